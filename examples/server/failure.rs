//! Answers to requests that come to nothing.

use admit::tower::Rejected;
use admit::{JoinError, Refused, SubmitError};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was sent is not what the service takes.
    Bad(StatusCode, String),
    /// The job was refused, or did not come to a value.
    Rejected(Rejected),
}

impl Failure {
    pub(crate) fn bad_request(why: impl Into<String>) -> Failure {
        Failure::Bad(StatusCode::BAD_REQUEST, why.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Failure::Bad(status, why) => (status, why + "\n").into_response(),
            Failure::Rejected(rejected) => rejected.into_response(),
        }
    }
}

impl From<Rejected> for Failure {
    fn from(rejected: Rejected) -> Failure {
        Failure::Rejected(rejected)
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        Failure::Rejected(refused.into())
    }
}

impl<F> From<SubmitError<F>> for Failure {
    fn from(error: SubmitError<F>) -> Failure {
        Failure::Rejected(error.into())
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Failure {
        Failure::Rejected(error.into())
    }
}

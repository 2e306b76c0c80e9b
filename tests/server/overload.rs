//! What becomes of requests that there is no room for, and of clients that go.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::process::{Connection, Server};

const PLACES: &str = "admit_reserved_places{lane=\"gzip\"}";
/// The capacity of the lane.
const ALL: usize = 6;

/// Takes all places of the lane, with bodies that do not come.
fn full(server: &Server) -> Vec<Connection> {
    let uploads = (0..ALL).map(|_| server.begin("/gzip", 1 << 20)).collect();
    server.wait_for(PLACES, |places| places == ALL as f64);
    uploads
}

/// More than all buffers on the way hold: the server has to go on reading for its answer to be read.
#[test]
fn a_refused_upload_reads_its_answer_and_no_reset() {
    let server = Server::start();
    let _uploads = full(&server);
    let body = vec![b'x'; 30 << 20];
    for _ in 0..5 {
        let mut connection = server.begin("/gzip", body.len());
        connection.send_what_it_takes(&body);
        let answer = connection.answer();
        assert_eq!(answer.status, 503);
        assert!(answer.head.contains("retry-after: "), "{}", answer.head);
        assert!(answer.text().contains("lane is full"), "{}", answer.text());
    }
}

#[test]
fn overload_is_no_ill_health_and_leaves_room_for_others() {
    let server = Server::start();
    let _uploads = full(&server);
    assert_eq!(server.post("/gzip", b"more").status, 503);
    assert_eq!(server.get("/healthz").status, 200);
    let json = br#"{"password": "p", "salt": "s", "log_n": 10}"#;
    assert_eq!(server.post("/hash", json).status, 200);
}

#[test]
fn a_client_that_goes_leaves_its_place() {
    let server = Server::start();
    let uploads = full(&server);
    assert!(server.metric("admit_waiting_input_bytes{lane=\"gzip\"}") >= 6.0 * f64::from(1 << 20));
    drop(uploads);
    server.wait_for(PLACES, |places| places == 0.0);
    server.wait_for("admit_waiting_input_bytes{lane=\"gzip\"}", |bytes| bytes == 0.0);
    assert_eq!(server.post("/gzip", b"more").status, 200);
}

/// One that sends too slowly is not waited for.
#[test]
fn a_body_that_does_not_come_in_time_loses_its_place() {
    let server = Server::with(&["--memory", "512MiB", "--receive-within", "1"]);
    let answer = server.begin("/gzip", 1 << 20).answer();
    assert_eq!(answer.status, 408);
    server.wait_for(PLACES, |places| places == 0.0);
}

/// As many as may wait, and all of the size that is the most.
#[test]
fn uploads_that_do_not_come_leave_room_for_logins() {
    let server = Server::with(&["--memory", "384MiB"]);
    let uploads = |path| (0..8).map(move |_| (path, 32 << 20));
    let connections: Vec<_> = uploads("/gzip")
        .chain(uploads("/thumbnail"))
        .map(|(path, bytes)| server.begin(path, bytes))
        .collect();
    server.wait_for(PLACES, |places| places == 1.0);
    server.wait_for("admit_reserved_places{lane=\"thumbnail\"}", |places| places == 1.0);
    let json = br#"{"password": "p", "salt": "s", "log_n": 10}"#;
    assert_eq!(server.post("/hash", json).status, 200);
    drop(connections);
}

/// Its answer is memory.
#[test]
fn a_client_that_does_not_take_its_answer_is_not_waited_for() {
    let server = Server::with(&["--memory", "512MiB", "--receive-within", "1"]);
    let mut rng = fastrand::Rng::with_seed(1);
    let body: Vec<u8> = (0..4 << 20).map(|_| rng.u8(..)).collect();
    let mut connection = server.begin("/gzip", body.len());
    connection.send(&body);
    server.wait_for("admit_kept_bytes{lane=\"gzip\"}", |bytes| bytes > 0.0);
    server.wait_for("admit_kept_bytes{lane=\"gzip\"}", |bytes| bytes == 0.0);
    drop(connection);
}

/// What does not compress, so that the answer is longer than all buffers on its way.
#[test]
fn an_answer_that_is_being_sent_is_counted_until_it_has_been() {
    const KEPT: &str = "admit_kept_bytes{lane=\"gzip\"}";
    let server = Server::start();
    let mut rng = fastrand::Rng::with_seed(1);
    let body: Vec<u8> = (0..24 << 20).map(|_| rng.u8(..)).collect();
    let mut connection = server.begin("/gzip", body.len());
    connection.send(&body);
    connection.read_little();
    assert!(server.metric(KEPT) >= f64::from(24 << 20));
    drop(connection);
    server.wait_for(KEPT, |bytes| bytes == 0.0);
    server.wait_for("admit_held_bytes", |bytes| bytes == 0.0);

    let mut connection = server.begin("/gzip", body.len());
    connection.send(&body);
    let mut expected = GzEncoder::new(Vec::new(), Compression::new(6));
    expected.write_all(&body).unwrap();
    assert!(connection.answer().body == expected.finish().unwrap());
    server.wait_for("admit_held_bytes", |bytes| bytes == 0.0);
}

#[test]
fn connections_beyond_the_limit_wait_for_others_to_end() {
    let server = Server::with(&["--memory", "512MiB", "--connections", "2"]);
    let (one, other) = (server.connect(), server.connect());
    let mut third = server.begin("/hash", 43);
    third.send(br#"{"password": "p", "salt": "s", "log_n": 10}"#);
    assert!(third.is_silent());
    one.shut_down();
    assert_eq!(third.answer().status, 200);
    drop(other);
}

//! What requests get that are wrong, or mean harm.

use crate::process::{Server, command};

#[test]
fn what_is_no_password_is_a_bad_request_and_says_why() {
    let server = Server::start();
    for (json, why) in [
        ("", "EOF"),
        ("{\"password\": [[[[}", "expected a string"),
        ("[\"p\", \"s\", 14]", "expected an object"),
        (r#"{"password": "p", "salt": "s"}"#, "missing field `log_n`"),
        (r#"{"password": "p", "salt": "s", "log_n": 40}"#, "log_n is 40"),
        (r#"{"password": "p", "salt": "s", "log_n": 9}"#, "log_n is 9"),
        (r#"{"password": "p", "salt": "s", "log_n": -1}"#, "-1"),
        (r#"{"password": "p", "salt": "s", "log_n": 1e9}"#, "floating point"),
        (r#"{"password": "p", "salt": "s", "log_n": 14, "r": 9}"#, "unknown field `r`"),
    ] {
        let answer = server.post("/hash", json.as_bytes());
        assert_eq!(answer.status, 400, "{json}: {answer:?}");
        assert!(answer.text().contains(why), "{json}: {}", answer.text());
    }
    assert_eq!(server.post("/hash", &[b'x'; 5000]).status, 413);
}

#[test]
fn what_there_is_no_such_request_for_is_told_so() {
    let server = Server::start();
    assert_eq!(server.get("/gzip").status, 405);
    assert_eq!(server.post("/nothing", b"").status, 404);
    assert_eq!(server.get("/plots/nothing.svg").status, 404);
}

/// The answer comes although nothing of the body was sent.
#[test]
fn a_body_that_is_too_long_is_refused_before_it_is_sent() {
    let server = Server::start();
    for path in ["/gzip", "/thumbnail", "/hash"] {
        for length in [(32 << 20) + 1, usize::MAX >> 1] {
            let answer = server.begin(path, length).answer();
            assert_eq!(answer.status, 413, "{path} {length}: {answer:?}");
        }
    }
}

#[test]
fn a_body_without_an_end_is_refused_when_it_is_too_long() {
    let server = Server::start();
    for path in ["/gzip", "/thumbnail"] {
        let mut connection = server.begin_chunked(path);
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..33 {
            connection.send_chunk(&chunk);
        }
        assert_eq!(connection.answer().status, 413);
    }
    server.wait_for("admit_waiting_input_bytes{lane=\"gzip\"}", |bytes| bytes == 0.0);
}

/// 11000 x 11000 pixels and no picture: it is the header that is refused.
#[test]
fn a_picture_that_never_fits_is_refused_by_its_header() {
    let server = Server::with(&["--memory", "384MiB"]);
    let mut file =
        Vec::from(*b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x2a\xf8\0\0\x2a\xf8\x08\x02\0\0\0");
    let mut crc = flate2::Crc::new();
    crc.update(&file[12..]);
    file.extend(crc.sum().to_be_bytes());
    file.extend(*b"\0\0\0\0IDAT");
    let answer = server.post("/thumbnail", &file);
    assert_eq!(answer.status, 413);
    assert!(answer.text().contains("never fits"), "{answer:?}");
}

#[test]
fn what_is_no_picture_is_a_bad_request() {
    let server = Server::start();
    let png_without_pixels = [&b"\x89PNG\r\n\x1a\n"[..], &[0; 30]].concat();
    for file in [&b""[..], b"hello", b"\xff\xd8\xff\xe0", &png_without_pixels, b"GIF89a"] {
        let answer = server.post("/thumbnail", file);
        assert_eq!(answer.status, 400, "{file:?}: {answer:?}");
    }
}

#[test]
fn what_is_no_http_harms_nobody() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(&[0, 255, 13, 10, 13, 10]);
    assert_eq!(connection.answer().status, 400);
    let mut connection = server.begin_chunked("/gzip");
    connection.send(b"nonsense\r\n");
    assert_eq!(connection.answer().status, 400);
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn a_bad_option_is_told_and_nothing_begins() {
    for (options, why) in [
        (&["--memory", "100MiB"][..], "waiting"),
        (&["--memory", "lots"], "512MiB"),
        (&["--workers", "1"], "2..=1024"),
        (&["--start-within=-1"], "0.001 to 86400"),
        (&["--connections", "0"], "1..=100000"),
        (&["--reserve", "1GiB", "--memory", "512MiB"], "reserve"),
    ] {
        let output = command(options).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {message}");
        assert!(message.contains(why), "{options:?}: {message}");
    }
}

//! SIGTERM.

use crate::process::Server;

const PLACES: &str = "admit_reserved_places{lane=\"gzip\"}";

#[test]
fn what_was_accepted_is_answered_also_if_its_body_is_still_on_its_way() {
    let mut server = Server::start();
    let mut uploads: Vec<_> = (0..3).map(|_| server.begin("/gzip", 1000)).collect();
    server.wait_for(PLACES, |places| places == 3.0);
    server.terminate();
    for upload in &mut uploads {
        upload.send(&[b'x'; 1000]);
    }
    for upload in uploads {
        assert_eq!(upload.answer().status, 200);
    }
    assert_eq!(server.wait().code(), Some(0));
}

/// They were told by the kernel that they are connected, and have not sent anything yet.
#[test]
fn who_has_connected_is_answered() {
    let mut server = Server::start();
    let mut connections: Vec<_> = (0..6).map(|_| server.connect()).collect();
    server.terminate();
    for connection in &mut connections {
        connection.send(b"POST /gzip HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nx");
    }
    for connection in connections {
        assert_eq!(connection.answer().status, 200);
    }
    assert_eq!(server.wait().code(), Some(0));
}

/// More than the server may have connections.
#[test]
fn who_waits_for_a_connection_is_answered() {
    let mut server = Server::with(&["--memory", "512MiB", "--connections", "2"]);
    let mut connections: Vec<_> = (0..8).map(|_| server.begin("/gzip", 1)).collect();
    server.terminate();
    for connection in &mut connections {
        connection.send(b"x");
    }
    for connection in connections {
        assert_eq!(connection.answer().status, 200);
    }
    assert_eq!(server.wait().code(), Some(0));
}

/// Its connection was kept for another request, which comes just then.
#[test]
fn who_asks_again_is_answered_and_told_that_it_was_the_last_time() {
    let mut server = Server::start();
    let mut connection = server.connect();
    connection.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    connection.read_little();
    server.terminate();
    // It has been told when it accepts nobody else.
    while server.accepts() {}
    connection.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    let both = connection.answer();
    let last = String::from_utf8(both.body).unwrap();
    assert!(last.contains("HTTP/1.1 200 OK") && last.contains("connection: close"), "{last}");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn one_that_does_not_come_is_not_waited_for_longer_than_said() {
    let mut server = Server::with(&["--memory", "512MiB", "--drain-within", "0.2"]);
    let _upload = server.begin("/gzip", 1000);
    server.wait_for(PLACES, |places| places == 1.0);
    server.terminate();
    assert_eq!(server.wait().code(), Some(1));
}

#[test]
fn who_has_connected_and_asks_nothing_is_not_waited_for() {
    let mut server = Server::start();
    let _asks_nothing = server.connect();
    assert_eq!(server.get("/healthz").status, 200);
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));
}

//! A server of a test's own, and raw connections to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    /// What it printed before it listened.
    pub(crate) greeting: String,
    _stdout: BufReader<ChildStdout>,
}

pub(crate) fn command(options: &[&str]) -> Command {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().and_then(Path::parent).unwrap();
    let program = target.join("examples/server");
    assert!(program.exists(), "{program:?} is missing: run `cargo build --examples` first");
    let mut command = Command::new(program);
    command.args(["--listen", "127.0.0.1:0"]).args(options);
    command
}

impl Server {
    /// In half a GiB, wherever the tests run.
    pub(crate) fn start() -> Server {
        Server::with(&["--memory", "512MiB"])
    }

    pub(crate) fn with(options: &[&str]) -> Server {
        let mut child = command(options).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        let address = loop {
            let mut line = String::new();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "it did not begin: {greeting}");
            if let Some(address) = line.trim_end().strip_prefix("listening on http://") {
                break address.parse().unwrap();
            }
            greeting += &line;
        };
        Server { child, address, greeting, _stdout: stdout }
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::to(self.address)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn accepts(&self) -> bool {
        TcpStream::connect(self.address).is_ok()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        get(self.address, path)
    }

    pub(crate) fn post(&self, path: &str, body: &[u8]) -> Answer {
        let mut connection = self.begin(path, body.len());
        connection.send(body);
        connection.answer()
    }

    /// A request whose body is still to be sent.
    pub(crate) fn begin(&self, path: &str, length: usize) -> Connection {
        let mut connection = self.connect();
        let head = format!("POST {path} HTTP/1.1\r\n{REST}content-length: {length}\r\n\r\n");
        connection.send(head.as_bytes());
        connection
    }

    /// The same without a length.
    pub(crate) fn begin_chunked(&self, path: &str) -> Connection {
        let mut connection = self.connect();
        let head = format!("POST {path} HTTP/1.1\r\n{REST}transfer-encoding: chunked\r\n\r\n");
        connection.send(head.as_bytes());
        connection
    }

    /// A metric, by its name and labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    /// Waits until a metric has a value.
    #[track_caller]
    pub(crate) fn wait_for(&self, name: &str, is_it: impl Fn(f64) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_it(self.metric(name)) {
            assert!(Instant::now() < until, "{name} is {}", self.metric(name));
        }
    }

    pub(crate) fn terminate(&self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    let mut connection = Connection::to(address);
    connection.send(format!("GET {path} HTTP/1.1\r\n{REST}\r\n").as_bytes());
    connection.answer()
}

const REST: &str = "host: localhost\r\nconnection: close\r\n";

pub(crate) struct Connection {
    stream: TcpStream,
}

impl Connection {
    fn to(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Connection { stream }
    }

    /// Whether nothing comes for a while.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let read = self.stream.read(&mut [0]);
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        read.is_err()
    }

    #[track_caller]
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// As much as the server takes.
    pub(crate) fn send_what_it_takes(&mut self, bytes: &[u8]) {
        drop(self.stream.write_all(bytes));
    }

    pub(crate) fn send_chunk(&mut self, bytes: &[u8]) {
        self.send(format!("{:x}\r\n", bytes.len()).as_bytes());
        self.send(bytes);
        self.send(b"\r\n");
    }

    /// Everything up to the end of the connection, which has to be a proper one.
    #[track_caller]
    pub(crate) fn answer(mut self) -> Answer {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let body = bytes.split_off(end.expect("there is a head") + 4);
        let head = String::from_utf8(bytes).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body }
    }

    /// Reads the first byte and no more, so that the answer is under way.
    pub(crate) fn read_little(&mut self) {
        self.stream.read_exact(&mut [0]).unwrap();
    }

    pub(crate) fn shut_down(&self) {
        self.stream.shutdown(Shutdown::Both).unwrap();
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        let body = if self.head.contains("transfer-encoding: chunked") {
            panic!("the server says how long its answers are: {}", self.head)
        } else {
            self.body.clone()
        };
        String::from_utf8(body).unwrap()
    }
}

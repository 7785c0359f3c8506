//! `aop serve` as everybody starts it, and connections to it that are kept open.

use crate::place::Place;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

/// A server of a project of its own. It is killed in the end.
pub(crate) struct Serving {
    child: Child,
    address: String,
    token: String,
}

impl Serving {
    /// After `aop init`.
    pub(crate) fn start(place: &Place, root: &Path, project: &str, aop: &Path) -> Self {
        place.init(aop, root, project);
        Self::go_on(place, root, project, aop)
    }

    /// In a project that is there.
    pub(crate) fn go_on(place: &Place, root: &Path, project: &str, aop: &Path) -> Self {
        let mut command = place.command(aop, root, project);
        let mut child =
            command.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("aop serve said {line:?} in {root:?}"));
        let text = |key: &str| said[key].as_str().unwrap().to_owned();
        Serving { child, address: text("url").trim_start_matches("http://").to_owned(), token: text("token") }
    }

    pub(crate) fn connect(&self) -> Http {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!("Host: {}\r\nAuthorization: Bearer {}", self.address, self.token);
        Http { stream: BufReader::new(stream), head }
    }

    /// Its process.
    pub(crate) fn process(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept open.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Http {
    /// Sends a request and does not wait. `more` are lines of the head, each with its end.
    pub(crate) fn send(&mut self, method: &str, path: &str, more: &str, body: &str) {
        let head = &self.head;
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{head}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
    }

    /// The body of the next response.
    pub(crate) fn receive(&mut self) -> String {
        let (mut length, mut chunked) = (0, false);
        loop {
            let header = self.line().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            chunked |= header.starts_with("transfer-encoding:") && header.contains("chunked");
        }
        let mut body = Vec::new();
        if !chunked {
            self.take(length, &mut body);
        }
        while chunked {
            let size = usize::from_str_radix(&self.line(), 16).unwrap();
            self.take(size, &mut body);
            self.line();
            chunked = size > 0;
        }
        String::from_utf8(body).unwrap()
    }

    /// Sends a request of the API; the data of its success.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: &Value) -> Value {
        self.send(method, path, "", &body.to_string());
        self.data()
    }

    /// The data of the next envelope.
    pub(crate) fn data(&mut self) -> Value {
        let mut reply: Value = serde_json::from_str(&self.receive()).unwrap();
        assert_eq!(reply["ok"], true, "{reply}");
        reply["data"].take()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.stream.read_line(&mut line).unwrap() > 0, "the server hung up");
        line.trim_end().to_owned()
    }

    fn take(&mut self, count: usize, body: &mut Vec<u8>) {
        let before = body.len();
        body.resize(before + count, 0);
        self.stream.read_exact(&mut body[before..]).unwrap();
    }
}

//! `aop serve` and a small HTTP client, written by hand so that it shares no mistake with the server.

use crate::support::{Project, Run, wait};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::time::Duration;

/// A server of a project, on a port of its own.
pub(crate) struct Server {
    child: Option<Child>,
    pub(crate) address: String,
    pub(crate) token: String,
    pub(crate) login_url: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The data of a success.
    pub(crate) fn data(&self) -> Value {
        assert_eq!((self.status, &self.json()["ok"]), (200, &json!(true)), "{self:?}");
        self.json()["data"].clone()
    }

    /// The error of a refusal.
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        let error = self.json()["error"].clone();
        assert_eq!((self.status, &error["code"]), (status, &json!(code)), "{self:?}");
        assert!(!error["details"]["hint"].as_str().unwrap_or_default().is_empty(), "{self:?}");
        error
    }
}

impl Server {
    pub(crate) fn start(project: &Project) -> Self {
        Server::start_with(project, &[], &[])
    }

    pub(crate) fn start_with(project: &Project, args: &[&str], variables: &[(&str, &str)]) -> Self {
        Server::attempt(project, args, variables).unwrap_or_else(|run| panic!("it does not start: {run:?}"))
    }

    /// A server, or what it said instead of starting.
    pub(crate) fn attempt(project: &Project, args: &[&str], variables: &[(&str, &str)]) -> Result<Self, Run> {
        let mut command = project.command(&["serve"]);
        if !args.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(args);
        command.envs(variables.iter().copied());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        child.stdout = Some(output.into_inner());
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        if !ready["url"].is_string() {
            return Err(Run { stdout: line, ..wait(child) });
        }
        let text = |key: &str| ready[key].as_str().unwrap().to_owned();
        let address = text("url").trim_start_matches("http://").to_owned();
        Ok(Server { child: Some(child), address, token: text("token"), login_url: text("login_url") })
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for the end of a server that was told to stop.
    pub(crate) fn ended(mut self) -> Run {
        wait(self.child.take().unwrap())
    }

    /// How many connections to it are established, as the system sees them.
    pub(crate) fn connections(&self) -> usize {
        let port = self.address.rsplit(':').next().unwrap().parse::<u16>().unwrap();
        let local = format!(":{port:04X} ");
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        // Columns: number, local address, remote address, state; 01 is established, 08 closed by the client.
        let ours = table.lines().filter(|line| {
            let mut columns = line.split_whitespace().skip(1);
            let local_end = columns.next().is_some_and(|address| format!("{address} ").ends_with(&local));
            local_end && columns.nth(1).is_some_and(|state| state == "01" || state == "08")
        });
        ours.count()
    }

    /// Kills it without a word.
    pub(crate) fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Asks it to stop and waits.
    pub(crate) fn stop(self) -> Run {
        self.signal("-TERM");
        self.ended()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// One request with exactly these headers, and `Host` unless it is given.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(self.head(method, path, headers, body.len()).as_bytes()).unwrap();
        // A server that refuses early may close its side while this is sent.
        let _ = stream.write_all(body.as_bytes());
        read_answer(&mut BufReader::new(stream))
    }

    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let given = |name: &str| headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
        if !given("host") {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        if length > 0 && !given("content-type") {
            head.push_str("Content-Type: application/json\r\n");
        }
        if !given("content-length") && !given("transfer-encoding") && (length > 0 || method == "POST") {
            head.push_str(&format!("Content-Length: {length}\r\n"));
        }
        headers.iter().for_each(|(key, value)| head.push_str(&format!("{key}: {value}\r\n")));
        head + "\r\n"
    }

    /// Sends a request with the operator's token and does not wait.
    pub(crate) fn begin(&self, method: &str, path: &str) -> Begun {
        let mut stream = self.connect();
        let bearer = format!("Bearer {}", self.token);
        stream.write_all(self.head(method, path, &[("Authorization", &bearer)], 0).as_bytes()).unwrap();
        Begun(BufReader::new(stream))
    }

    /// The same with the operator's token.
    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send_as(&self.token, method, path, body)
    }

    pub(crate) fn send_as(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.request(method, path, &[("Authorization", &bearer)], &body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &Value::Null)
    }

    /// A tool of the contract.
    pub(crate) fn tool(&self, name: &str, input: &Value) -> Answer {
        self.send("POST", &format!("/api/v1/tools/{name}"), input)
    }

    /// Follows the events; with `after`, from there.
    pub(crate) fn follow(&self, token: &str, after: Option<u64>) -> Events {
        let mut stream = self.connect();
        let bearer = format!("Bearer {token}");
        let after = after.map(|after| after.to_string());
        let mut headers = vec![("Authorization", bearer.as_str()), ("Accept", "text/event-stream")];
        headers.extend(after.as_ref().map(|after| ("Last-Event-ID", after.as_str())));
        stream.write_all(self.head("GET", "/events", &headers, 0).as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader);
        assert_eq!(status, 200, "{headers:?}");
        let mut events = Events { reader, buffer: String::new() };
        // The greeting: from here on nothing is missed.
        events.block();
        events
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A request under way.
pub(crate) struct Begun(BufReader<TcpStream>);

impl Begun {
    /// Waits for the answer.
    pub(crate) fn finish(mut self) -> Answer {
        read_answer(&mut self.0)
    }
}

/// A stream of server-sent events.
pub(crate) struct Events {
    reader: BufReader<TcpStream>,
    buffer: String,
}

impl Events {
    /// The next block of lines; `None` at the end.
    fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let block = self.buffer[..end].to_owned();
                self.buffer.drain(..end + 2);
                return Some(block);
            }
            let mut size = String::new();
            self.reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).ok()?;
            if size == 0 {
                return None;
            }
            chunk.truncate(size);
            self.buffer.push_str(&String::from_utf8(chunk).unwrap());
        }
    }

    /// The next event: its number and what it says; `None` when the server closed the stream.
    pub(crate) fn next(&mut self) -> Option<(u64, Value)> {
        loop {
            let block = self.block()?;
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            if let (Some(id), Some(data)) = (field("id: "), field("data: ")) {
                return Some((id.parse().unwrap(), serde_json::from_str(data).unwrap()));
            }
        }
    }
}

fn read_head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status: {line:?}")).parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((key, value)) = line.trim_end().split_once(": ") else { return (status, headers) };
        headers.push((key.to_owned(), value.to_owned()));
    }
}

fn read_answer(reader: &mut impl BufRead) -> Answer {
    let (status, headers) = read_head(reader);
    let mut body = Vec::new();
    // Every request of this client asks for the connection to be closed after the answer.
    let _ = reader.read_to_end(&mut body);
    let chunked = headers.iter().any(|(key, value)| key == "transfer-encoding" && value == "chunked");
    let body = if chunked { unchunked(&body) } else { body };
    Answer { status, headers, body: String::from_utf8(body).unwrap() }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let Some(end) = body.windows(2).position(|pair| pair == b"\r\n") else { return whole };
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return whole;
        }
        whole.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
    }
}

//! A small MCP client, written by hand so that it shares no mistake with the server: lines of JSON-RPC over the
//! binary's standard input and output.

use crate::support::{Project, Run, wait};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A connection to a server of its own.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
    /// What came while something else was waited for.
    early: Vec<Value>,
}

impl Client {
    /// Starts `aop mcp` with these arguments and shakes hands.
    pub(crate) fn start(project: &Project, args: &[&str]) -> Self {
        Client::start_with(project, args, &[], &json!({}))
    }

    /// The same with variables and capabilities.
    pub(crate) fn start_with(
        project: &Project,
        args: &[&str],
        variables: &[(&str, &str)],
        capabilities: &Value,
    ) -> Self {
        let mut command = project.command(&[&["mcp"], args].concat());
        command.envs(variables.iter().copied());
        let mut client = Client::connect(&mut command);
        client.shake_hands("2025-11-25", capabilities);
        client
    }

    /// Begins the conversation under this version of the protocol.
    pub(crate) fn shake_hands(&mut self, version: &str, capabilities: &Value) {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "test-client", "version": "1"}});
        let answer = self.request("initialize", params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "aop", "{answer}");
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Starts a server and says nothing yet.
    pub(crate) fn connect(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Client { child, input, output, next: 0, early: Vec::new() }
    }

    /// Sends one message.
    pub(crate) fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    /// Sends one line, whatever is in it.
    pub(crate) fn send_text(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request and does not wait; its id.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    /// The next message that fits, in whichever order they come.
    pub(crate) fn next_where(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.early.iter().position(&fits) {
            return self.early.remove(place);
        }
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the server closed its output");
            let message: Value = serde_json::from_str(&line).unwrap();
            if fits(&message) {
                return message;
            }
            self.early.push(message);
        }
    }

    /// What came and was not asked for yet.
    pub(crate) fn unread(&self) -> &[Value] {
        &self.early
    }

    /// The answer to a request.
    pub(crate) fn answer_to(&mut self, id: u64) -> Value {
        self.next_where(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer_to(id)
    }

    /// Calls a tool and does not wait.
    pub(crate) fn begin_call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.begin("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool; the envelope.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin_call(tool, arguments);
        envelope(&self.answer_to(id))
    }

    /// The data of a success.
    pub(crate) fn data(&mut self, tool: &str, arguments: &Value) -> Value {
        let envelope = self.call(tool, arguments);
        assert_eq!(envelope["ok"], true, "{envelope}");
        envelope["data"].clone()
    }

    /// The error of a refusal with this code.
    pub(crate) fn refused(&mut self, tool: &str, arguments: &Value, code: &str) -> Value {
        let envelope = self.call(tool, arguments);
        assert_eq!(envelope["error"]["code"], code, "{envelope}");
        envelope["error"].clone()
    }

    /// Closes standard input and waits for the end.
    pub(crate) fn close(mut self) -> Run {
        drop(self.input.take());
        wait(self.child)
    }

    /// Kills the server without a word.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The envelope of a tool result, which is there twice and says the same.
pub(crate) fn envelope(answer: &Value) -> Value {
    let result = &answer["result"];
    let structured = &result["structuredContent"];
    assert!(structured.is_object(), "{answer}");
    assert_eq!(structured.to_string(), result["content"][0]["text"], "{answer}");
    assert_eq!(result["isError"], structured["ok"] == false, "{answer}");
    structured.clone()
}

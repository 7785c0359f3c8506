//! Small transcripts, written here and nowhere recorded, in each engine's own words.

use aop_turn::{Engine, Mode, Outcome, OutputSchema, Process, Rules, TurnReader, Verdict, judge};
use serde_json::{Value, json};

/// A schema that wants a summary and knows a list of files.
pub(crate) fn report_schema() -> Value {
    json!({"type": "object", "required": ["summary"], "additionalProperties": false, "properties": {
        "summary": {"type": "string"}, "files": {"type": "array", "items": {"type": "string"}}}})
}

/// The rules of a turn, with everything at its default.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) mode: Mode,
    pub(crate) attempt: u32,
    pub(crate) max_attempt: u32,
    pub(crate) schema: Option<Value>,
    pub(crate) process: Process,
}

pub(crate) fn interactive() -> Setup {
    Setup { mode: Mode::Interactive, attempt: 1, max_attempt: 20, schema: None, process: Process::default() }
}

pub(crate) fn auto() -> Setup {
    Setup { mode: Mode::Auto, ..interactive() }
}

impl Setup {
    pub(crate) fn report(self) -> Setup {
        Setup { schema: Some(report_schema()), ..self }
    }

    pub(crate) fn attempt(self, attempt: u32, max_attempt: u32) -> Setup {
        Setup { attempt, max_attempt, ..self }
    }

    pub(crate) fn exit(self, code: i32) -> Setup {
        Setup { process: Process { exit_code: Some(code), timed_out: false }, ..self }
    }

    pub(crate) fn timed_out(self) -> Setup {
        Setup { process: Process { exit_code: Some(137), timed_out: true }, ..self }
    }

    pub(crate) fn judge(&self, engine: Engine, transcript: &[u8]) -> Verdict {
        let mut reader = TurnReader::new(engine);
        reader.feed(transcript);
        self.judge_turn(&reader.finish())
    }

    pub(crate) fn judge_turn(&self, turn: &aop_turn::Turn) -> Verdict {
        let schema = self.schema.as_ref();
        judge(
            turn,
            &Rules {
                mode: self.mode,
                attempt: self.attempt,
                max_attempt: self.max_attempt,
                schema: schema.map(|schema| OutputSchema { schema, check: &aop_schema::check_instance }),
                process: self.process,
            },
        )
    }
}

pub(crate) fn error_code(verdict: &Verdict) -> Option<&'static str> {
    match &verdict.outcome {
        Outcome::Error { code, .. } => Some(code.as_str()),
        Outcome::Final { .. } | Outcome::AskUser(_) => None,
    }
}

/// The object of the turn protocol.
pub(crate) fn protocol(verdict: &Verdict) -> Value {
    Value::Object(verdict.outcome.to_json(&verdict.warnings))
}

/// Lines to a stream.
pub(crate) fn stream(lines: &[Value]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

/// A complete turn of any engine whose last message is `text`.
pub(crate) fn turn(engine: Engine, text: &str) -> Vec<u8> {
    match engine {
        Engine::ClaudeCode => stream(&[claude::init(), claude::text("m1", text), claude::done(text)]),
        Engine::Codex => {
            stream(&[codex::thread(), codex::started(), codex::message(text), codex::completed()])
        }
        Engine::Gemini => {
            stream(&[gemini::init(), gemini::user("go"), gemini::delta(text), gemini::success()])
        }
        Engine::Iflow => iflow(text),
        Engine::Scripted => stream(&[
            json!({"type": "started", "session": "s-1"}),
            json!({"type": "said", "text": text}),
            json!({"type": "ended"}),
        ]),
    }
}

/// A complete turn that ends with the engine's own way to ask; iFlow has none and writes a payload.
pub(crate) fn asking_turn(engine: Engine) -> Vec<u8> {
    match engine {
        Engine::ClaudeCode => stream(&[
            claude::init(),
            claude::tool("m1", "toolu_1", "AskUserQuestion", &claude::card("Which database?")),
            claude::deferred("toolu_1", "AskUserQuestion", &claude::card("Which database?")),
        ]),
        Engine::Codex => stream(&[
            codex::app_thread("t-main"),
            codex::app("turn/started", json!({"threadId": "t-main"})),
            codex::request_user_input(0, "call_1", "Which database?"),
        ]),
        Engine::Gemini => stream(&[
            gemini::init(),
            gemini::user("go"),
            gemini::tool("ask__1", "mcp_aop_ask_human", &json!({"prompt": "Which database?"})),
            gemini::stopped("ask__1"),
            gemini::success(),
        ]),
        Engine::Iflow => iflow("{\"__SKILL_DONE__\": false, \"message\": \"Which database?\"}"),
        Engine::Scripted => stream(&[
            json!({"type": "started", "session": "s-1"}),
            json!({"type": "ask", "call_id": "call_1", "prompt": "Which database?"}),
        ]),
    }
}

pub(crate) mod claude {
    use serde_json::{Value, json};

    pub(crate) fn init() -> Value {
        json!({"type": "system", "subtype": "init", "session_id": "c-1", "tools": ["Bash"]})
    }

    pub(crate) fn text(message: &str, text: &str) -> Value {
        block(message, json!({"type": "text", "text": text}), Value::Null)
    }

    pub(crate) fn sub_text(message: &str, text: &str) -> Value {
        block(message, json!({"type": "text", "text": text}), json!("toolu_parent"))
    }

    pub(crate) fn tool(message: &str, call: &str, name: &str, input: &Value) -> Value {
        block(message, json!({"type": "tool_use", "id": call, "name": name, "input": input}), Value::Null)
    }

    pub(crate) fn block(message: &str, block: Value, parent: Value) -> Value {
        json!({"parent_tool_use_id": parent, "session_id": "c-1", "type": "assistant",
            "message": {"id": message, "role": "assistant", "content": [block]}})
    }

    pub(crate) fn tool_result(call: &str, content: &str) -> Value {
        json!({"type": "user", "message": {"role": "user",
            "content": [{"type": "tool_result", "tool_use_id": call, "content": content}]}})
    }

    pub(crate) fn card(question: &str) -> Value {
        json!({"questions": [{"question": question, "header": "Database", "multiSelect": false, "options": [
            {"label": "Postgres", "description": "a server"}, {"label": "SQLite", "description": "a file"}]}]})
    }

    pub(crate) fn can_use_tool(request: &str, call: &str, tool: &str, input: &Value) -> Value {
        json!({"type": "control_request", "request_id": request, "request": {"subtype": "can_use_tool",
            "tool_name": tool, "tool_use_id": call, "input": input}})
    }

    pub(crate) fn done(text: &str) -> Value {
        json!({"usage": {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 4}, "type": "result",
            "subtype": "success", "is_error": false, "result": text, "stop_reason": "end_turn",
            "total_cost_usd": 0.25, "session_id": "c-1"})
    }

    pub(crate) fn deferred(call: &str, name: &str, input: &Value) -> Value {
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "",
            "stop_reason": "tool_deferred", "deferred_tool_use": {"id": call, "name": name, "input": input}})
    }

    pub(crate) fn failed(subtype: &str, reason: &str, text: &str) -> Value {
        json!({"type": "result", "subtype": subtype, "is_error": true, "terminal_reason": reason, "result": text})
    }
}

pub(crate) mod codex {
    use serde_json::{Value, json};

    pub(crate) fn thread() -> Value {
        json!({"type": "thread.started", "thread_id": "x-1"})
    }

    pub(crate) fn started() -> Value {
        json!({"type": "turn.started"})
    }

    pub(crate) fn command_started() -> Value {
        json!({"type": "item.started", "item": {"id": "item_7", "type": "command_execution", "command": "make"}})
    }

    pub(crate) fn reasoning() -> Value {
        json!({"type": "item.completed", "item": {"id": "item_8", "type": "reasoning", "text": "hm"}})
    }

    pub(crate) fn app_item(method: &str, thread: &str, id: &str, kind: &str) -> Value {
        app(method, json!({"threadId": thread, "item": {"id": id, "type": kind}}))
    }

    pub(crate) fn message(text: &str) -> Value {
        json!({"type": "item.completed", "item": {"id": "item_9", "type": "agent_message", "text": text}})
    }

    pub(crate) fn command(output: &str) -> Value {
        json!({"type": "item.completed", "item": {"id": "item_3", "type": "command_execution", "command": "cat x",
            "aggregated_output": output, "exit_code": 0, "status": "completed"}})
    }

    pub(crate) fn warning(text: &str) -> Value {
        json!({"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": text}})
    }

    pub(crate) fn completed() -> Value {
        json!({"type": "turn.completed", "usage": {"input_tokens": 500, "cached_input_tokens": 100, "output_tokens": 50}})
    }

    pub(crate) fn error(text: &str) -> Value {
        json!({"type": "error", "message": text})
    }

    pub(crate) fn failed(text: &str) -> Value {
        json!({"type": "turn.failed", "error": {"message": text}})
    }

    pub(crate) fn app(method: &str, params: Value) -> Value {
        json!({"method": method, "params": params})
    }

    pub(crate) fn app_thread(id: &str) -> Value {
        json!({"id": 2, "result": {"thread": {"id": id, "status": {"type": "idle"}}}})
    }

    pub(crate) fn app_message(thread: &str, id: &str, text: &str) -> Value {
        app(
            "item/completed",
            json!({"threadId": thread, "item": {"type": "agentMessage", "id": id, "text": text,
            "delivery": null, "questions": null}}),
        )
    }

    pub(crate) fn app_completed(status: &str) -> Value {
        app(
            "turn/completed",
            json!({"threadId": "t-main", "turn": {"id": "u", "status": status, "error": null}}),
        )
    }

    pub(crate) fn request_user_input(id: u64, call: &str, question: &str) -> Value {
        json!({"method": "item/tool/requestUserInput", "id": id, "params": {"threadId": "t-main", "turnId": "u",
            "itemId": call, "isBlocking": true, "questions": [{"id": "db_choice", "header": "Database",
            "question": question, "isOther": true, "isSecret": false, "options": [
                {"label": "Postgres", "description": "a server"}, {"label": "SQLite", "description": "a file"}]}]}})
    }

    pub(crate) fn resolved(id: u64) -> Value {
        app("serverRequest/resolved", json!({"threadId": "t-main", "requestId": id}))
    }
}

pub(crate) mod gemini {
    use serde_json::{Value, json};

    pub(crate) fn init() -> Value {
        json!({"type": "init", "session_id": "g-1", "model": "m"})
    }

    pub(crate) fn user(text: &str) -> Value {
        json!({"type": "message", "role": "user", "content": text})
    }

    pub(crate) fn delta(text: &str) -> Value {
        json!({"type": "message", "role": "assistant", "content": text, "delta": true})
    }

    pub(crate) fn tool(call: &str, name: &str, input: &Value) -> Value {
        json!({"type": "tool_use", "tool_name": name, "tool_id": call, "parameters": input})
    }

    pub(crate) fn tool_result(call: &str, output: &str) -> Value {
        json!({"type": "tool_result", "tool_id": call, "status": "success", "output": output})
    }

    pub(crate) fn stopped(call: &str) -> Value {
        json!({"type": "tool_result", "tool_id": call, "status": "error", "output": "stopped",
            "error": {"type": "stop_execution", "message": "PARKED"}})
    }

    pub(crate) fn success() -> Value {
        json!({"type": "result", "status": "success", "stats": {"input_tokens": 20, "output_tokens": 5, "cached": 1}})
    }

    pub(crate) fn failed(text: &str) -> Value {
        json!({"type": "result", "status": "error", "error": {"type": "FatalApiError", "message": text}})
    }
}

/// iFlow's text with its block.
pub(crate) fn iflow(text: &str) -> Vec<u8> {
    let block = "{\n  \"session-id\": \"session-1\",\n  \"assistantRounds\": 2,\n  \"tokenUsage\": {\"input\": 7, \"output\": 3}\n}";
    format!("{text}\n\n<Execution Info>\n{block}\n</Execution Info>\n").into_bytes()
}

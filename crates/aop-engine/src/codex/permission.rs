//! Permissions that Codex asks for: commands, file changes, tools of MCP servers, wider access.
//!
//! An approval cannot be given to a process that is gone, so the process is kept while a person decides. Should it go
//! all the same, the resumed turn is told in words, and the same request is then granted without asking again.

use super::opening::named;
use crate::port::{Reply, ReplyKind};
use aop_turn::native::{AskBody, read_permission};
use aop_turn::quote::quoted;
use serde_json::{Value, json};

/// The choice that allows. Everything else does not.
const ALLOW: &str = "allow";
const DENY: &str = "deny";

/// A request for permission.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Permission {
    kind: Kind,
    /// What is asked for, in the shape that the question keeps.
    input: Value,
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    FileChange,
    McpTool,
    Access,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Command => "command",
            Kind::FileChange => "file change",
            Kind::McpTool => "MCP tool",
            Kind::Access => "permissions",
        }
    }
}

impl Permission {
    /// Reads a request of the server's; nothing when it is about something else. The changes are those of the item
    /// that it is about.
    pub(crate) fn read(method: &str, params: &Value, changes: Option<&Value>) -> Option<Permission> {
        let reason = params.get("reason").and_then(Value::as_str).map(str::to_owned);
        let (kind, input) = match method {
            "item/commandExecution/requestApproval" => {
                (Kind::Command, json!({"command": params["command"], "cwd": params["cwd"]}))
            }
            "item/fileChange/requestApproval" => {
                let changes = changes.cloned().unwrap_or_default();
                let description = described(&changes);
                let input = json!({"changes": changes, "grant_root": params["grantRoot"], "description": description});
                (Kind::FileChange, input)
            }
            "item/permissions/requestApproval" => {
                let description = params["permissions"].to_string();
                let input = json!({"permissions": params["permissions"], "cwd": params["cwd"], "description": description});
                (Kind::Access, input)
            }
            "mcpServer/elicitation/request" if params["_meta"]["codex_approval_kind"] == "mcp_tool_call" => {
                let arguments = &params["_meta"]["tool_params"];
                let message = params["message"].as_str().unwrap_or_default();
                let input = json!({"server": params["serverName"], "message": message, "arguments": arguments,
                    "description": format!("{message}\n\n{arguments}")});
                (Kind::McpTool, input)
            }
            _ => return None,
        };
        Some(Permission { kind, input, reason })
    }

    /// What a person is asked.
    pub(crate) fn body(&self) -> AskBody {
        read_permission(self.kind.name(), &self.input, self.reason.as_deref())
    }

    /// What the server is told.
    pub(crate) fn decision(&self, allowed: bool) -> Value {
        match (self.kind, allowed) {
            (Kind::Command | Kind::FileChange, true) => json!({"decision": "accept"}),
            (Kind::Command | Kind::FileChange, false) => json!({"decision": "decline"}),
            (Kind::McpTool, true) => json!({"action": "accept", "content": {}}),
            (Kind::McpTool, false) => json!({"action": "decline"}),
            (Kind::Access, true) => json!({"permissions": self.input["permissions"], "scope": "turn"}),
            (Kind::Access, false) => json!({"permissions": {}, "scope": "turn"}),
        }
    }

    /// Whether it is what was granted before.
    pub(super) fn is(&self, granted: &Value) -> bool {
        granted["tool"] == self.kind.name() && granted["input"] == self.input
    }
}

fn described(changes: &Value) -> String {
    let change = |change: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = change["kind"].get("type").map_or_else(|| text(&change["kind"]), text);
        format!("{kind} {}\n{}", text(&change["path"]), text(&change["diff"])).trim_end().to_owned()
    };
    let changes: Vec<String> = changes.as_array().into_iter().flatten().map(change).collect();
    if changes.is_empty() {
        "a change of files that Codex did not describe".to_owned()
    } else {
        changes.join("\n")
    }
}

/// Whether a recorded question asked for a permission of the engine's.
pub(super) fn is_permission(question: &Value) -> bool {
    question["question_type"] == "permission_override" && question.pointer("/details/tool").is_some()
}

/// Whether a reply allows what was asked for: the exact choice, and nothing else.
pub(super) fn allows(reply: &Reply) -> bool {
    reply.kind == ReplyKind::Answered && reply.answer == ALLOW
}

/// What the model has to be told beside the decision: everything that is not simply yes or no.
pub(super) fn remark(reply: &Reply) -> Option<String> {
    let plain = reply.kind == ReplyKind::Answered && (reply.answer == ALLOW || reply.answer == DENY);
    (!plain).then(|| super::opening::told(reply))
}

/// What the call is told when its process was gone before the decision came.
pub(super) fn told_later(reply: &Reply) -> String {
    if allows(reply) {
        return "Not run yet: the turn was put aside while a person decided about this. It is allowed now. Make the \
                same call again and it will be let through."
            .to_owned();
    }
    let words = remark(reply).unwrap_or_else(|| "A person decided against it.".to_owned());
    format!("Not run, and it must not be: permission was not given. {words}")
}

/// The same where the call cannot be told.
pub(super) fn told_by_message(reply: &Reply) -> String {
    let asked = reply.question["prompt"].as_str().unwrap_or("a permission");
    let words = format!("About the permission you needed:\n\n{}\n\n{}", quoted(asked), told_later(reply));
    named(&words, &reply.question_id)
}

/// What was granted too late to be used.
pub(super) fn granted(reply: &Reply) -> Option<Value> {
    allows(reply).then(|| reply.question["details"].clone())
}

//! The words of the interactive mode.

use crate::engine::{Engine, Role};

pub(super) fn text(engine: Engine, role: Role) -> String {
    let how = match engine {
        Engine::ClaudeCode => {
            "Call the `AskUserQuestion` tool. If you have several questions, put all of them into one call."
        }
        Engine::Codex => {
            "Call the `request_user_input` tool where it is offered. Elsewhere, end your turn with the question."
        }
        Engine::Gemini => "Call the tool `mcp_aop_ask_human` with your question as `prompt`.",
        Engine::Iflow => "End your turn with the question; the answer is the next message you get.",
        Engine::Scripted => "The scenario says what is asked.",
    };
    let advice = match role {
        Role::Planner => {
            "A question asked while planning is cheaper than the same question asked while building."
        }
        Role::Builder => {
            "Ask about what the plan leaves open and costly to undo; decide small matters and name them."
        }
        Role::Qa => {
            "Ask when a behaviour may be a mistake or may be intended and the documents leave it open."
        }
    };
    format!(
        "## Asking a person\n\
         \n\
         A person can be reached while you work. Ask whenever you need a decision, a permission or a missing fact:\n\
         the work is put aside until there is an answer and then goes on from the same point. {advice}\n\
         \n\
         {how} Plain words are fine, and the reply may be plain words too.\n\
         \n\
         If you want to give the question a shape, you can end your message with one JSON object. Only `message` is\n\
         needed, the rest is optional:\n\
         \n\
         {{\"__SKILL_DONE__\": false, \"message\": \"Which of the two?\", \"ui_hints\": {{\"kind\": \"choose_one\",\n\
         \"options\": [{{\"label\": \"First\", \"value\": \"first\"}}, {{\"label\": \"Second\", \"value\": \"second\"}}]}}}}\n\
         \n\
         `kind` is one of choose_one, confirm, fill_fields, open_text, upload_files, risk_ack. A permission can be\n\
         requested as {{\"type\": \"REQUEST\", \"request\": {{\"action\": \"ask_user_input\", \"question_type\":\n\
         \"permission_override\", \"prompt\": \"May I change config/x.yaml?\"}}}}.\n"
    )
}

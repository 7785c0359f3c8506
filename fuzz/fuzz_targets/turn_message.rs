//! The last message: any text, in a stream that is otherwise in order.
#![no_main]

mod turn_support;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let item = serde_json::json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}});
    // The first byte says where to cut; for once that is not what is tried.
    let data = format!("~{item}\n{{\"type\":\"turn.completed\"}}\n");
    turn_support::check(aop_turn::Engine::Codex, data.as_bytes());
});

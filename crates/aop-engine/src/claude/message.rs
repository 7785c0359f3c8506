//! Which calls ask in the same message. The engine runs the hook of a call as soon as that call is complete, while the
//! rest of the message still streams in; what the engine writes to its output shows when the message is over.

use super::hook::{ASK_TOOL, HookCall};
use crate::plain::open_file;
use serde_json::Value;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

/// A message that takes longer after a question is not waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// The call has to show in the output within this time, or the output does not show what is needed.
const SHOWS_WITHIN: Duration = Duration::from_secs(3);
/// So much of the end of the output is looked at.
const LOOKED_AT: u64 = 16 << 20;

/// The calls of one message that ask, in order, each with its input.
pub type Asks = Vec<(String, Value)>;

/// All asks of the message that this call belongs to, once the message is complete. Just this one when that cannot be
/// known.
pub fn asks_of_message(run_dir: &Path, call: &HookCall) -> Asks {
    let output = run_dir.join("transcript.jsonl");
    let start = Instant::now();
    loop {
        let seen = look(&output, call);
        let waited = start.elapsed();
        match seen {
            Seen::Complete(asks) => return asks,
            Seen::Part(asks) if waited > PATIENCE => return asks,
            Seen::Nothing if waited > SHOWS_WITHIN => {
                return vec![(call.tool_use_id.clone(), call.tool_input.clone())];
            }
            Seen::Part(_) | Seen::Nothing => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    Nothing,
    Part(Asks),
    Complete(Asks),
}

fn look(output: &Path, call: &HookCall) -> Seen {
    let mut text = Vec::new();
    let read = open_file(output).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOOKED_AT)))?;
        file.read_to_end(&mut text)
    });
    if read.is_err() { Seen::Nothing } else { seen(&text, &call.tool_use_id) }
}

/// Reads the end of the output backwards as little as possible: the message's lines stand near its end.
pub(crate) fn seen(output: &[u8], call: &str) -> Seen {
    let lines: Vec<&[u8]> = output.split(|byte| *byte == b'\n').collect();
    let holds = |line: &[u8], word: &str| memchr::memmem::find(line, word.as_bytes()).is_some();
    let Some(last) = lines.iter().rposition(|line| holds(line, call) && holds(line, "\"assistant\"")) else {
        return Seen::Nothing;
    };
    let Some(message) = assistant(lines[last]).map(|(id, _)| id) else { return Seen::Nothing };
    let mut asks = Asks::new();
    let mut is_over = false;
    for line in lines.iter().filter(|line| holds(line, &message) || holds(line, "message_stop")) {
        match assistant(line) {
            Some((id, blocks)) if id == message => {
                if std::mem::take(&mut is_over) {
                    asks.clear();
                }
                let calls = blocks.into_iter().filter(|block| block["name"] == ASK_TOOL);
                asks.extend(calls.map(|block| {
                    (block["id"].as_str().unwrap_or_default().to_owned(), block["input"].clone())
                }));
            }
            Some(_) => {}
            None => is_over |= !asks.is_empty() && is_message_stop(line),
        }
    }
    if is_over { Seen::Complete(asks) } else { Seen::Part(asks) }
}

/// The id and the blocks of a line of the main agent's.
fn assistant(line: &[u8]) -> Option<(String, Vec<Value>)> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let is_main = line["type"] == "assistant" && line["parent_tool_use_id"].is_null();
    let id = line["message"]["id"].as_str().filter(|_| is_main)?.to_owned();
    Some((id, line["message"]["content"].as_array().cloned().unwrap_or_default()))
}

fn is_message_stop(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line)
        .is_ok_and(|line| line["event"]["type"] == "message_stop" && line["parent_tool_use_id"].is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn output(lines: &[Value]) -> Vec<u8> {
        lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
    }

    fn asks(message: &str, call: &str) -> Value {
        json!({"type": "assistant", "parent_tool_use_id": null, "message": {"id": message, "content": [
            {"type": "tool_use", "id": call, "name": ASK_TOOL, "input": {"n": call}}]}})
    }

    #[test]
    fn a_message_is_complete_when_the_engine_says_so() {
        let stop =
            json!({"type": "stream_event", "event": {"type": "message_stop"}, "parent_tool_use_id": null});
        let other =
            json!({"type": "stream_event", "event": {"type": "message_stop"}, "parent_tool_use_id": "t"});
        let a = ("a".to_owned(), json!({"n": "a"}));
        let b = ("b".to_owned(), json!({"n": "b"}));
        assert_eq!(seen(&output(std::slice::from_ref(&stop)), "a"), Seen::Nothing);
        assert_eq!(seen(&output(&[stop.clone(), asks("m", "a"), other]), "a"), Seen::Part(vec![a.clone()]));
        let both = [asks("m0", "z"), stop.clone(), asks("m", "a"), asks("m", "b"), stop];
        assert_eq!(seen(&output(&both), "a"), Seen::Complete(vec![a.clone(), b.clone()]));
        assert_eq!(seen(&output(&both), "b"), Seen::Complete(vec![a, b]));
    }
}

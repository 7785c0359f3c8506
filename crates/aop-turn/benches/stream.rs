//! How fast irrelevant lines are skipped, beside what it would cost to parse each of them.
//!
//! `cargo bench -p aop-turn`. The ratio is printed first; divan's own table follows.

use aop_turn::stream::StreamParser;
use aop_turn::{Engine, TurnReader};
use divan::{Bencher, black_box, counter::BytesCount};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Instant;

const ENGINES: [Engine; 4] = [Engine::ClaudeCode, Engine::Codex, Engine::Gemini, Engine::Iflow];

fn main() {
    // A reader that went away does not matter here.
    let _ = print_ratios();
    divan::main();
}

fn print_ratios() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:<12} {:>12} {:>12} {:>8}", "engine", "skip MB/s", "parse MB/s", "ratio")?;
    for engine in ENGINES {
        let transcript = irrelevant(engine);
        let skip = megabytes_per_second(&transcript, |bytes| events(engine, bytes));
        let parse = megabytes_per_second(&transcript, parse_each_line);
        writeln!(out, "{:<12} {skip:>12.0} {parse:>12.0} {:>7.1}x", engine.as_str(), skip / parse)?;
    }
    writeln!(out)
}

fn megabytes_per_second(transcript: &[u8], run: impl Fn(&[u8]) -> usize) -> f64 {
    let started = Instant::now();
    let mut bytes = 0;
    while started.elapsed().as_millis() < 400 {
        black_box(run(black_box(transcript)));
        bytes += transcript.len();
    }
    bytes as f64 / 1e6 / started.elapsed().as_secs_f64()
}

/// About eight megabytes of what fills real transcripts: tool output, progress, partial messages.
fn irrelevant(engine: Engine) -> Vec<u8> {
    let output = "fn main() {\n    let path = \"a/b\"; // lorem ipsum dolor sit amet\n}\n".repeat(30);
    let lines: Vec<Value> = match engine {
        Engine::ClaudeCode => vec![
            json!({"type": "user", "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": output}]}, "session_id": "s", "uuid": "u"}),
            json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": "lorem"}}, "session_id": "s", "uuid": "u"}),
            json!({"type": "system", "subtype": "task_progress", "task_id": "t", "usage": {"total_tokens": 5}}),
        ],
        Engine::Codex => vec![
            json!({"type": "item.completed", "item": {"id": "item_3", "type": "command_execution", "command": "cat x",
                "aggregated_output": output, "exit_code": 0, "status": "completed"}}),
            json!({"type": "item.updated", "item": {"id": "item_2", "type": "todo_list", "items": [{"text": "a"}]}}),
            json!({"method": "item/agentMessage/delta", "params": {"threadId": "t", "itemId": "m", "delta": "lorem"}}),
        ],
        Engine::Gemini => {
            vec![json!({"type": "tool_result", "tool_id": "read__1", "status": "success", "output": output})]
        }
        // Plain text has no irrelevant lines; this is the cost of taking it in.
        Engine::Iflow => return output.repeat(4_000).into_bytes(),
        Engine::Scripted => vec![json!({"type": "other", "text": output})],
    };
    let portion: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
    portion.repeat(8_000_000 / portion.len())
}

fn events(engine: Engine, transcript: &[u8]) -> usize {
    let mut count = 0;
    let mut parser = StreamParser::new(engine);
    for portion in transcript.chunks(256 << 10) {
        parser.feed(portion, &mut |event| {
            black_box(event);
            count += 1;
        });
    }
    count
}

fn parse_each_line(transcript: &[u8]) -> usize {
    transcript
        .split(|byte| *byte == b'\n')
        .filter(|line| serde_json::from_slice::<Value>(line).is_ok())
        .count()
}

#[divan::bench(args = ENGINES.map(Engine::as_str))]
fn skip_irrelevant_lines(bencher: Bencher<'_, '_>, engine: &str) {
    let Some(engine) = Engine::parse(engine) else { return };
    let transcript = irrelevant(engine);
    bencher.counter(BytesCount::of_slice(&transcript)).bench(|| events(engine, black_box(&transcript)));
}

#[divan::bench(args = ENGINES.map(Engine::as_str))]
fn read_whole_turn(bencher: Bencher<'_, '_>, engine: &str) {
    let Some(engine) = Engine::parse(engine) else { return };
    let transcript = irrelevant(engine);
    bencher.counter(BytesCount::of_slice(&transcript)).bench(|| {
        let mut reader = TurnReader::new(engine);
        transcript.chunks(256 << 10).for_each(|portion| reader.feed(portion));
        reader.finish()
    });
}

#[divan::bench(args = ENGINES.map(Engine::as_str))]
fn parse_every_line_with_serde_json(bencher: Bencher<'_, '_>, engine: &str) {
    let Some(engine) = Engine::parse(engine) else { return };
    let transcript = irrelevant(engine);
    bencher.counter(BytesCount::of_slice(&transcript)).bench(|| parse_each_line(black_box(&transcript)));
}

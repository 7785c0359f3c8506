//! What holds for every input.

use crate::support::*;
use aop_turn::patch::{PatchFor, patch};
use aop_turn::stream::{Event, StreamParser};
use aop_turn::{Engine, Mode, Role, TurnReader};
use proptest::prelude::*;
use serde_json::json;

fn engine() -> impl Strategy<Value = Engine> {
    prop::sample::select(Engine::ALL)
}

fn setup() -> impl Strategy<Value = Setup> {
    let exit = prop::option::of(prop::sample::select(&[0, 1, 137][..]));
    (prop::sample::select(Mode::ALL), 1..4_u32, 1..4_u32, any::<bool>(), exit, any::<bool>()).prop_map(
        |(mode, attempt, max_attempt, schema, exit_code, timed_out)| {
            let setup = Setup { mode, ..interactive().attempt(attempt, max_attempt) };
            let mut setup = if schema { setup.report() } else { setup };
            setup.process.exit_code = exit_code;
            setup.process.timed_out = timed_out;
            setup
        },
    )
}

/// Lines of every engine, whole, broken and foreign.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::sample::select(
        &[
            "",
            "Which?",
            "{\"__SKILL_DONE__\": true}",
            "{\"summary\":\"x\"}",
            "{\"__SKILL_DONE__\":false,\"message\":\"?\"}",
            "```json\n{}\n```",
            "<Execution Info>",
            "é",
        ][..],
    );
    let known = (0..24_usize, text, 0..3_u8).prop_map(|(which, text, n)| {
        let call = format!("call_{n}");
        let value = match which {
            0 => claude::init(),
            1 => claude::text(&format!("m{n}"), text),
            2 => claude::sub_text("s", text),
            3 => claude::tool("m1", &call, "AskUserQuestion", &claude::card("Q?")),
            4 => claude::tool_result(&call, text),
            5 => claude::can_use_tool("r", &call, "Bash", &json!({"command": text})),
            6 => claude::done(text),
            7 => claude::deferred(&call, "AskUserQuestion", &json!({"questions": text})),
            8 => claude::failed("success", "api_error", text),
            9 => codex::thread(),
            10 => codex::started(),
            11 => codex::message(text),
            12 => codex::command(text),
            13 => codex::completed(),
            14 => codex::failed(text),
            15 => codex::app_thread("t-main"),
            16 => codex::app_message("t-main", &call, text),
            17 => codex::request_user_input(u64::from(n), &call, text),
            18 => codex::resolved(u64::from(n)),
            19 => gemini::init(),
            20 => gemini::delta(text),
            21 => gemini::tool(&call, "mcp_aop_ask_human", &json!({"prompt": text})),
            22 => gemini::stopped(&call),
            _ => gemini::success(),
        };
        value.to_string().into_bytes()
    });
    let block = Just(b"<Execution Info>{\"session-id\":\"s\"}</Execution Info>".to_vec());
    let raw = prop::collection::vec(any::<u8>(), 0..40);
    let cut = (known.clone(), 0..200_usize).prop_map(|(line, at)| line[..at.min(line.len())].to_vec());
    prop_oneof![6 => known, 1 => block, 1 => raw, 1 => cut]
}

fn transcript() -> impl Strategy<Value = Vec<u8>> {
    let end = prop::sample::select(&["\n", "\r\n", "\n\n", ""][..]);
    prop::collection::vec((line(), end), 0..14).prop_map(|lines| {
        lines.into_iter().flat_map(|(line, end)| [line, end.as_bytes().to_vec()].concat()).collect()
    })
}

fn events(engine: Engine, portions: &[&[u8]]) -> Vec<Event> {
    let mut found = Vec::new();
    let mut parser = StreamParser::new(engine);
    for portion in portions {
        parser.feed(portion, &mut |event| found.push(event));
    }
    parser.finish(&mut |event| found.push(event));
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(600)))]

    #[test]
    fn any_chunking_gives_the_same_events(
        engine in engine(), transcript in transcript(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let whole = events(engine, &[&transcript]);
        let bytes: Vec<&[u8]> = transcript.chunks(1).collect();
        prop_assert_eq!(&whole, &events(engine, &bytes));
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(transcript.len() + 1)).collect();
        places.sort_unstable();
        let mut portions = Vec::new();
        let mut start = 0;
        for place in places {
            portions.push(&transcript[start..place]);
            start = place;
        }
        portions.push(&transcript[start..]);
        prop_assert_eq!(&whole, &events(engine, &portions));
    }

    #[test]
    fn every_event_knows_a_range_in_order_and_within(engine in engine(), transcript in transcript()) {
        let mut last = 0;
        for event in events(engine, &[&transcript]) {
            prop_assert!(event.range.start >= last && event.range.start <= event.range.end);
            prop_assert!(event.range.end <= transcript.len() as u64);
            last = event.range.start;
        }
    }

    #[test]
    fn every_turn_has_an_outcome(engine in engine(), transcript in transcript(), setup in setup()) {
        let verdict = setup.judge(engine, &transcript);
        let data = protocol(&verdict);
        let mut fields: Vec<&str> = data.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        match data["outcome"].as_str() {
            Some("final") => prop_assert_eq!(fields, ["final_data", "outcome", "warnings"]),
            Some("ask_user") => {
                prop_assert_eq!(fields, ["interaction", "outcome", "warnings"]);
                prop_assert!(setup.mode == Mode::Interactive && setup.attempt < setup.max_attempt);
                prop_assert!(!data["interaction"]["prompt"].as_str().unwrap().trim().is_empty());
            }
            Some("error") => {
                prop_assert_eq!(fields, ["error", "outcome", "warnings"]);
                prop_assert!(!data["error"]["message"].as_str().unwrap().is_empty());
            }
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert!(verdict.evidence.iter().filter(|piece| piece.counted).count() == 1);
    }

    #[test]
    fn any_bytes_are_a_turn(engine in engine(), bytes in prop::collection::vec(any::<u8>(), 0..400), setup in setup()) {
        let mut reader = TurnReader::new(engine);
        bytes.chunks(7).for_each(|portion| reader.feed(portion));
        setup.judge_turn(&reader.finish());
    }

    #[test]
    fn patches_keep_their_words_whatever_the_folder(
        engine in engine(), role in prop::sample::select(Role::ALL), folder in "[xyz/._-]{1,30}",
    ) {
        let of = |mode| patch(&PatchFor { engine, mode, role, artifacts: &folder });
        prop_assert_eq!(crate::patches::bans_on_asking(&of(Mode::Interactive)), None::<String>);
        let auto = of(Mode::Auto).to_lowercase();
        for word in ["kind", "prompt", "option", "ui_hints"] {
            prop_assert!(!auto.contains(word));
        }
        prop_assert!(auto.contains(folder.trim_end_matches('/')));
    }
}

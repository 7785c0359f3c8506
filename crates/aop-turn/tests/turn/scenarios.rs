//! One test for each scenario of the turn protocol and of the decision policy, named after it.

use crate::support::*;
use aop_turn::command::{Conversation, Launch, Permissions, command_line};
use aop_turn::patch::{PatchFor, patch};
use aop_turn::repair::{NextStep, next_step};
use aop_turn::{Engine, Mode, Outcome, Role};
use serde_json::{Value, json};

const FINAL: &str = "{\"__SKILL_DONE__\": true, \"summary\": \"all good\"}";

fn patch_of(engine: Engine, mode: Mode, role: Role) -> String {
    patch(&PatchFor { engine, mode, role, artifacts: "runs/r1/artifacts/" })
}

fn argv(engine: Engine, mode: Mode, conversation: Conversation<'_>) -> Vec<String> {
    let permissions = Permissions::Auto;
    command_line(&Launch { engine, mode, conversation, permissions, version: None, output_schema: None }).argv
}

fn has(argv: &[String], word: &str) -> bool {
    argv.iter().any(|arg| arg == word)
}

mod turn_protocol {
    use super::*;

    #[test]
    fn adapter_returns_ask_user() {
        for &engine in Engine::ALL {
            let data = protocol(&interactive().judge(engine, &asking_turn(engine)));
            assert_eq!(data["outcome"], "ask_user", "{engine}");
            assert_eq!(data["interaction"]["prompt"], "Which database?", "{engine}");
            let fields: Vec<&String> = data["interaction"].as_object().unwrap().keys().collect();
            assert_eq!(
                fields,
                [
                    "interaction_id",
                    "source_attempt",
                    "kind",
                    "prompt",
                    "options",
                    "ui_hints",
                    "default_decision_policy",
                    "required_fields",
                    "context"
                ],
                "{engine}"
            );
            assert_eq!(error_code(&auto().judge(engine, &asking_turn(engine))), Some("AUTO_MODE_ASKED_USER"));
        }
    }

    #[test]
    fn adapter_returns_final() {
        for &engine in Engine::ALL {
            for setup in [interactive().report(), auto().report(), interactive(), auto()] {
                let data = protocol(&setup.judge(engine, &turn(engine, FINAL)));
                let expected =
                    json!({"outcome": "final", "final_data": {"summary": "all good"}, "warnings": []});
                assert_eq!(data, expected, "{engine}");
            }
        }
    }

    #[test]
    fn ask_user_lacks_required_fields() {
        for &engine in Engine::ALL {
            for payload in [
                json!({"outcome": "ask_user", "interaction": {"prompt": "?"}}),
                json!({"outcome": "ask_user", "interaction": {"interaction_id": 1}}),
                json!({"outcome": "ask_user", "interaction": {"interaction_id": 0, "prompt": "?"}}),
                json!({"outcome": "ask_user", "interaction": {"interaction_id": 1, "prompt": " "}}),
                json!({"outcome": "ask_user"}),
                json!({"__SKILL_DONE__": false}),
                json!({"__SKILL_DONE__": false, "message": ""}),
                json!({"type": "REQUEST", "request": {"action": "ask_user_input"}}),
            ] {
                let verdict = interactive().judge(engine, &turn(engine, &payload.to_string()));
                assert_eq!(error_code(&verdict), Some("ASK_USER_PAYLOAD_INVALID"), "{engine}: {payload}");
            }
        }
    }

    #[test]
    fn auto_mode_patch() {
        for &engine in Engine::ALL {
            for &role in Role::ALL {
                assert!(patch_of(engine, Mode::Auto, role).contains("Do not ask for decisions"));
            }
        }
    }

    #[test]
    fn interactive_mode_patch() {
        for &engine in Engine::ALL {
            for &role in Role::ALL {
                let text = patch_of(engine, Mode::Interactive, role);
                assert!(text.contains("Ask whenever you need a decision"), "{text}");
                assert!(text.contains("\"__SKILL_DONE__\": false") && text.contains("optional"), "{text}");
            }
        }
    }

    #[test]
    fn artifact_redirection_in_both_modes() {
        for &engine in Engine::ALL {
            for &mode in Mode::ALL {
                assert!(patch_of(engine, mode, Role::Builder).contains("below\n`runs/r1/artifacts/`"));
            }
        }
    }

    #[test]
    fn interactive_mode_has_no_ban_on_asking() {
        for &engine in Engine::ALL {
            for &role in Role::ALL {
                assert_eq!(
                    crate::patches::bans_on_asking(&patch_of(engine, Mode::Interactive, role)),
                    None::<String>
                );
            }
        }
    }

    #[test]
    fn gemini_auto_mode_command() {
        assert!(has(&argv(Engine::Gemini, Mode::Auto, Conversation::Start(None)), "--yolo"));
    }

    #[test]
    fn gemini_interactive_mode_command() {
        assert!(has(&argv(Engine::Gemini, Mode::Interactive, Conversation::Start(None)), "--yolo"));
    }

    #[test]
    fn iflow_auto_mode_command() {
        let argv = argv(Engine::Iflow, Mode::Auto, Conversation::Start(None));
        assert!(has(&argv, "--yolo") && has(&argv, "--thinking"));
    }

    #[test]
    fn iflow_interactive_mode_command() {
        let argv = argv(Engine::Iflow, Mode::Interactive, Conversation::Start(None));
        assert!(has(&argv, "--yolo") && has(&argv, "--thinking"));
    }

    #[test]
    fn codex_auto_mode_command() {
        let argv = argv(Engine::Codex, Mode::Auto, Conversation::Start(None));
        assert!(has(&argv, "--yolo") || has(&argv, "--full-auto"));
    }

    #[test]
    fn codex_interactive_mode_command() {
        let argv = argv(Engine::Codex, Mode::Interactive, Conversation::Start(None));
        assert!(has(&argv, "--yolo") || has(&argv, "--full-auto"));
    }

    #[test]
    fn interactive_resume_turn_command() {
        for &engine in Engine::ALL {
            let argv = argv(engine, Mode::Interactive, Conversation::Resume("id-1"));
            assert!(has(&argv, "id-1"), "{engine}");
            match engine {
                Engine::Gemini => assert!(has(&argv, "--yolo")),
                Engine::Iflow => assert!(has(&argv, "--yolo") && has(&argv, "--thinking")),
                Engine::Codex => assert!(has(&argv, "--yolo") || has(&argv, "--full-auto")),
                Engine::ClaudeCode => assert!(has(&argv, "bypassPermissions")),
                Engine::Scripted => assert!(has(&argv, "scripted")),
            }
        }
    }
}

mod decision_policy {
    use super::*;

    fn ask(engine: Engine, payload: &Value) -> Value {
        let data = protocol(&interactive().judge(engine, &turn(engine, &payload.to_string())));
        assert_eq!(data["outcome"], "ask_user", "{engine}: {payload}");
        data["interaction"].clone()
    }

    #[test]
    fn kind_missing_or_unexpected() {
        for &engine in Engine::ALL {
            for kind in [json!(null), json!("telepathy"), json!(3)] {
                let payload = json!({"outcome": "ask_user", "interaction":
                    {"interaction_id": 1, "prompt": "Which?", "kind": kind}});
                assert_eq!(ask(engine, &payload)["kind"], "open_text");
            }
            assert_eq!(
                ask(engine, &json!({"__SKILL_DONE__": false, "message": "Which?"}))["kind"],
                "open_text"
            );
        }
    }

    #[test]
    fn payload_has_the_core_fields() {
        for &engine in Engine::ALL {
            let interaction = ask(
                engine,
                &json!({"__SKILL_DONE__": false, "message": "Which?",
                "ui_hints": {"kind": "decision", "options": ["A", "B"], "hint": "short"}}),
            );
            assert_eq!(interaction["kind"], "choose_one");
            assert_eq!(interaction["prompt"], "Which?");
            assert_eq!(interaction["options"][1], json!({"label": "B", "value": "B"}));
            assert_eq!(interaction["ui_hints"]["hint"], "short");
        }
    }

    /// Whether a reply is taken is the record's matter; here, every kind leaves it open.
    #[test]
    fn free_text_is_taken_for_every_kind() {
        for kind in aop_turn::interaction::Kind::ALL {
            let payload = json!({"__SKILL_DONE__": false, "message": "?", "ui_hints": {"kind": kind, "options": ["A"]}});
            let verdict = interactive().judge(Engine::Iflow, &turn(Engine::Iflow, &payload.to_string()));
            let Outcome::AskUser(ask) = verdict.outcome else { panic!("{kind}") };
            assert_eq!(aop_turn::ask::question_arguments(&ask)["expected_answer"], Value::Null, "{kind}");
        }
    }

    #[test]
    fn interactive_mode_does_not_demand_the_ask_user_structure() {
        for &engine in Engine::ALL {
            let text = patch_of(engine, Mode::Interactive, Role::Planner).to_lowercase();
            assert!(text.contains("plain words are fine"));
            for demand in ["must", "required to", "have to", "always end"] {
                assert!(!text.contains(demand), "{demand}");
            }
            let data = protocol(&interactive().judge(engine, &turn(engine, "Which of the two do you want?")));
            assert_eq!(data["outcome"], "ask_user");
            assert_eq!(data["interaction"]["prompt"], "Which of the two do you want?");
        }
    }

    #[test]
    fn auto_mode_keeps_its_meaning() {
        for &engine in Engine::ALL {
            for &role in Role::ALL {
                let text = patch_of(engine, Mode::Auto, role).to_lowercase();
                assert!(text.contains("do not ask"));
                for word in ["kind", "prompt", "option", "ui_hints", "interaction"] {
                    assert!(!text.contains(word), "{word} in {text}");
                }
            }
        }
    }

    #[test]
    fn interaction_has_a_default_decision_policy() {
        for &engine in Engine::ALL {
            let data = protocol(&interactive().judge(engine, &asking_turn(engine)));
            assert_eq!(data["interaction"]["default_decision_policy"], "engine_judgement", "{engine}");
            let given = json!({"__SKILL_DONE__": false, "message": "?", "ui_hints": {"default_decision_policy": "decline"}});
            assert_eq!(ask(engine, &given)["default_decision_policy"], "decline");
        }
    }

    #[test]
    fn strong_evidence_completes_first() {
        for &engine in Engine::ALL {
            for setup in [interactive(), auto(), interactive().attempt(20, 20), interactive().report()] {
                let verdict = setup.judge(engine, &turn(engine, &format!("May I ask something?\n{FINAL}")));
                assert_eq!(protocol(&verdict)["outcome"], "final", "{engine}");
                assert!(verdict.warnings.is_empty());
            }
        }
    }

    #[test]
    fn what_stands_in_a_code_block_that_is_never_closed_is_no_result_and_no_ask() {
        let ask = "{\"outcome\":\"ask_user\",\"interaction\":{\"interaction_id\":1,\"prompt\":\"Which?\"}}";
        for object in [FINAL, ask] {
            for text in [
                format!("Done.\n```json\n{object}"),
                format!("I wrote:\n```rust\nfn main() {{}}\n\n{object}"),
                format!("I wrote:\n~~~\nfn main() {{}}\n```\n{object}"),
                format!("I wrote:\n```rust\nfn main() {{}}\n\n```json\n{object}\n```"),
            ] {
                let verdict =
                    interactive().report().judge(Engine::ClaudeCode, &turn(Engine::ClaudeCode, &text));
                assert_eq!(protocol(&verdict)["interaction"]["prompt"], text);
                let verdict = auto().judge(Engine::ClaudeCode, &turn(Engine::ClaudeCode, &text));
                assert_eq!(protocol(&verdict)["error"]["code"], "AUTO_COMPLETION_EVIDENCE_MISSING", "{text}");
            }
        }
    }

    #[test]
    fn soft_evidence_completes_with_a_warning() {
        for &engine in Engine::ALL {
            let transcript = turn(engine, "{\"summary\": \"x\"}");
            let verdict = interactive().report().judge(engine, &transcript);
            assert_eq!(protocol(&verdict)["final_data"], json!({"summary": "x"}));
            assert_eq!(verdict.warnings, ["INTERACTIVE_COMPLETED_WITHOUT_DONE_MARKER"]);
            assert_eq!(protocol(&auto().report().judge(engine, &transcript))["outcome"], "final");
            assert_eq!(
                protocol(&interactive().judge(engine, &transcript))["outcome"],
                "ask_user",
                "no schema given"
            );
        }
    }

    #[test]
    fn max_attempt_hit_without_completion_evidence() {
        let exceeded = Some("INTERACTIVE_MAX_ATTEMPT_EXCEEDED");
        for &engine in Engine::ALL {
            for transcript in
                [asking_turn(engine), turn(engine, "Which?"), turn(engine, "{\"__SKILL_DONE__\": false}")]
            {
                assert_eq!(error_code(&interactive().attempt(3, 3).judge(engine, &transcript)), exceeded);
                assert_eq!(error_code(&interactive().attempt(4, 3).judge(engine, &transcript)), exceeded);
                assert_ne!(error_code(&interactive().attempt(2, 3).judge(engine, &transcript)), exceeded);
            }
            let done =
                interactive().report().attempt(3, 3).judge(engine, &turn(engine, "{\"summary\": \"x\"}"));
            assert_eq!(protocol(&done)["outcome"], "final");
        }
    }

    #[test]
    fn two_native_asks_in_one_message_become_one_form() {
        let ask =
            |call: &str, prompt: &str| gemini::tool(call, "mcp_aop_ask_human", &json!({"prompt": prompt}));
        let two = [
            gemini::init(),
            gemini::user("go"),
            ask("a1", "Which database?"),
            ask("a2", "Which port?"),
            gemini::stopped("a1"),
            gemini::success(),
        ];
        let data = protocol(&interactive().judge(Engine::Gemini, &stream(&two)));
        assert_eq!(data["interaction"]["prompt"], "1. Which database?\n2. Which port?");
        assert_eq!(data["interaction"]["required_fields"], json!(["question", "question_2"]));
        assert_eq!(data["warnings"], json!([]));
    }

    #[test]
    fn an_ask_in_the_text_beside_one_by_tool_is_left_out_with_a_warning() {
        let beside = |text: &str| {
            let lines = [
                json!({"type": "said", "text": text}),
                json!({"type": "ask", "call_id": "call_1", "prompt": "Which database?"}),
            ];
            interactive().judge(Engine::Scripted, &stream(&lines))
        };
        let request = |action: &str| {
            let request = json!({"action": action, "prompt": "Which port?"});
            json!({"type": "REQUEST", "request": request}).to_string()
        };
        for (text, warning) in [
            (request("ask_user_input"), "ASK_LEFT_OUT: \"Which port?\" (in the text)"),
            ("{\"__SKILL_DONE__\": false}".to_owned(), "ASK_LEFT_OUT: in the text: "),
            (request("fly"), "UNKNOWN_REQUEST_ACTION: 'fly'"),
        ] {
            let verdict = beside(&text);
            assert_eq!(protocol(&verdict)["interaction"]["prompt"], "Which database?");
            let [said] = &verdict.warnings[..] else { panic!("{text}: {:?}", verdict.warnings) };
            assert!(said.starts_with(warning), "{text}: {said}");
            assert_eq!(verdict.beside_a_question(), verdict.warnings);
        }
        assert_eq!(beside("One moment.").warnings, Vec::<String>::new());
        // Recorded over another door, which the stream does not show.
        let alone =
            interactive().judge(Engine::Scripted, &turn(Engine::Scripted, &request("ask_user_input")));
        assert!(alone.warnings.is_empty() && alone.beside_a_question()[0].contains("Which port?"));
        let prose = interactive().judge(Engine::Scripted, &turn(Engine::Scripted, "I have asked."));
        assert_eq!(prose.beside_a_question(), Vec::<String>::new());
    }

    #[test]
    fn a_result_that_is_not_what_was_written_is_written_anew_in_the_same_session() {
        for &engine in Engine::ALL {
            let twice = turn(engine, "{\"__SKILL_DONE__\": true, \"id\": 1, \"id\": 2}");
            let verdict = interactive().judge(engine, &twice);
            let NextStep::Repair { text, .. } = next_step(&verdict, 0, 1) else { panic!("{verdict:?}") };
            assert!(text.contains("\"id\" stands twice"), "{engine}: {text}");
        }
    }

    #[test]
    fn a_number_of_an_ask_by_tool_that_may_have_been_rounded_is_left_out_by_name() {
        let input = "{\"prompt\": \"Which?\", \"choices\": [\"a\", \"b\"], \"details\": {\"id\": 123456789012345678901}}";
        let call = gemini::tool("a1", "mcp_aop_ask_human", &json!("INPUT")).to_string();
        let call = call.replace("\"INPUT\"", input);
        let lines = [&stream(&[gemini::init(), gemini::user("go")])[..], call.as_bytes(), b"\n"].concat();
        let end = stream(&[gemini::stopped("a1"), gemini::success()]);
        let verdict = interactive().judge(Engine::Gemini, &[lines, end].concat());
        let Outcome::AskUser(ask) = &verdict.outcome else { panic!("{verdict:?}") };
        assert_eq!((ask.interaction.prompt.as_str(), &ask.details), ("Which?", &Value::Null));
        assert_eq!(ask.expected_answer["choices"], json!(["a", "b"]));
        let [said] = &verdict.warnings[..] else { panic!("{:?}", verdict.warnings) };
        assert!(said.starts_with("ASK_FIELD_LEFT_OUT: details: the number 1.23"), "{said}");
    }

    #[test]
    fn what_is_left_out_of_an_ask_is_a_warning() {
        for &engine in Engine::ALL {
            let payload = json!({"type": "REQUEST", "request": {"action": "ask_user_input", "prompt": "?",
                "expected_answer": {"kind": "free_text", "default": 7}}});
            let verdict = interactive().judge(engine, &turn(engine, &payload.to_string()));
            let left = "ASK_FIELD_LEFT_OUT: expected_answer.default: it is not a valid answer";
            assert_eq!(verdict.warnings, [left], "{engine}");
        }
    }
}

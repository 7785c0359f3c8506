//! Elicitation: the client shows the question in its own interface, beside every other surface.

use crate::mcp_client::{Client, envelope};
use crate::support::Project;
use serde_json::{Value, json};

const AGENT: (&str, &str) = ("AOP_AGENT", r#"{"feature_id": "shop", "role": "builder", "claim": "c-1"}"#);

fn with_forms(project: &Project) -> Client {
    Client::start_with(project, &[], &[], &json!({"elicitation": {"form": {}}}))
}

fn choice() -> Value {
    json!({"prompt": "Which one?", "choices": ["left", "right"]})
}

/// The next form the server wants shown.
fn form(client: &mut Client) -> Value {
    client.next_where(|message| message["method"] == "elicitation/create")
}

/// The next form, which has to come before the call ends.
fn form_before_the_end_of(client: &mut Client, call: u64) -> Value {
    let next =
        client.next_where(|message| message["method"] == "elicitation/create" || message["id"] == call);
    assert_eq!(next["method"], "elicitation/create", "{next}");
    next
}

fn reply(client: &mut Client, form: &Value, result: &Value) {
    client.send(&json!({"jsonrpc": "2.0", "id": form["id"], "result": result}));
}

#[test]
fn what_the_form_accepts_is_the_answer() {
    let project = Project::with_feature();
    let mut client = with_forms(&project);
    let call = client.begin_call("ask_user", &choice());
    let shown = form(&mut client);
    assert_eq!(shown["params"]["message"], "Which one?", "{shown}");
    let field = &shown["params"]["requestedSchema"]["properties"]["answer"];
    assert_eq!(field["oneOf"][0], json!({"const": "left", "title": "left"}), "{shown}");
    reply(&mut client, &shown, &json!({"action": "accept", "content": {"answer": "right"}}));
    let told = envelope(&client.answer_to(call))["data"].clone();
    assert_eq!((&told["status"], &told["answer"]), (&json!("answered"), &json!("right")));
    client.close();
    project.assert_healthy();
}

#[test]
fn a_form_that_is_declined_closes_and_the_question_stays() {
    for action in ["decline", "cancel"] {
        let project = Project::with_feature();
        let mut client = with_forms(&project);
        let call = client.begin_call("ask_user", &choice());
        let question = project.opened_question();
        let shown = form(&mut client);
        reply(&mut client, &shown, &json!({"action": action}));
        assert_eq!(client.request("ping", json!({}))["result"], json!({}));
        project.answer_to(&question, "left").data();
        assert_eq!(envelope(&client.answer_to(call))["data"]["answer"], "left");
    }
}

#[test]
fn an_answer_elsewhere_takes_the_form_back() {
    let project = Project::with_feature();
    let mut client = with_forms(&project);
    let call = client.begin_call("ask_user", &choice());
    let shown = form(&mut client);
    project.answer_to(&project.opened_question(), "left").data();
    let taken = client.next_where(|message| message["method"] == "notifications/cancelled");
    assert_eq!(taken["params"]["requestId"], shown["id"]);
    assert_eq!(envelope(&client.answer_to(call))["data"]["answer"], "left");
    // Too late, and nobody is harmed.
    reply(&mut client, &shown, &json!({"action": "accept", "content": {"answer": "right"}}));
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_spec_is_one_form_and_a_wrong_reply_answers_nothing() {
    let project = Project::with_feature();
    let mut client = with_forms(&project);
    let spec = json!({"version": 1, "topic": "t", "questions": [
        {"id": "name", "header": "Name", "question": "Which name?", "kind": "free_text", "required": true},
        {"id": "size", "header": "Size", "question": "Which size?", "kind": "single_choice", "required": true,
            "options": [{"label": "S", "description": "small"}, {"label": "L", "description": "large"}]}]});
    let call = client.begin_call("ask_user", &json!({"prompt": "The shop", "spec": spec}));
    let shown = form(&mut client);
    assert_eq!(shown["params"]["requestedSchema"]["required"], json!(["name", "size"]), "{shown}");
    reply(&mut client, &shown, &json!({"action": "accept", "content": {"name": "Corner", "size": "L"}}));
    let told = envelope(&client.answer_to(call))["data"].clone();
    assert_eq!(told["answer"], json!({"name": "Corner", "size": "L"}));
    let call = client.begin_call("ask_user", &choice());
    let shown = form(&mut client);
    reply(&mut client, &shown, &json!({"action": "accept", "content": {"answer": 7}}));
    let question = project.run(&["questions"]).data()["items"][0].clone();
    project.answer_to(&question, "left").data();
    assert_eq!(envelope(&client.answer_to(call))["data"]["answer"], "left");
}

/// A question of the builder of `shop` whose answer has to satisfy a schema.
fn ticket() -> Value {
    json!({"feature_id": "shop", "role": "builder", "session_id": "s", "operation_id": "op-1",
        "question_type": "clarification", "prompt": "Which ticket?",
        "expected_answer": {"kind": "free_text", "schema": {"pattern": "^T-[0-9]+$"}}})
}

fn accepted(answer: &str) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

#[test]
fn what_a_form_accepts_and_is_no_answer_is_asked_again_with_the_reason() {
    let project = Project::with_feature();
    let capabilities = json!({"elicitation": {"form": {}}});
    let mut client = Client::start_with(&project, &["--feature-id", "shop"], &[], &capabilities);
    let id = client.data("feature.question_create", &ticket())["question_id"].clone();
    let call = client.begin_call("await_answer", &json!({"question_id": id}));
    let message = |form: &Value| form["params"]["message"].as_str().unwrap().to_owned();
    let mut shown = form_before_the_end_of(&mut client, call);
    assert!(message(&shown).contains("this schema: {\"pattern\":\"^T-[0-9]+$\"}"), "{shown}");
    for wrong in ["hello", "T-"] {
        reply(&mut client, &shown, &accepted(wrong));
        shown = form_before_the_end_of(&mut client, call);
        let why = format!("Asked again: the answer was not taken: (root): \"{wrong}\" does not match");
        assert!(message(&shown).contains(&why), "{shown}");
    }
    reply(&mut client, &shown, &accepted("T-1"));
    assert_eq!(envelope(&client.answer_to(call))["data"]["answer"], "T-1");
    client.close();
    project.assert_healthy();
}

#[test]
fn a_form_names_no_schema_that_no_text_is_held_to() {
    let project = Project::with_feature();
    let capabilities = json!({"elicitation": {"form": {}}});
    let mut client = Client::start_with(&project, &["--feature-id", "shop"], &[], &capabilities);
    let mut open = ticket();
    open["interaction"] = json!({"interaction_id": 1, "prompt": "Which ticket?", "kind": "open_text"});
    let id = client.data("feature.question_create", &open)["question_id"].clone();
    let call = client.begin_call("await_answer", &json!({"question_id": id}));
    let shown = form_before_the_end_of(&mut client, call);
    assert_eq!(shown["params"]["message"], "Which ticket?");
    reply(&mut client, &shown, &accepted("the one of yesterday"));
    assert_eq!(envelope(&client.answer_to(call))["data"]["answer"], "the one of yesterday");
}

#[test]
fn what_a_stateless_form_accepts_and_is_no_answer_is_asked_again_with_the_reason() {
    let project = Project::with_feature();
    let mut client = Client::connect(&mut project.command(&["mcp", "--feature-id", "shop"]));
    let call = stateless(&mut client, json!({"name": "feature.question_create", "arguments": ticket()}));
    let id = envelope(&client.answer_to(call))["data"]["question_id"].clone();
    let mut wait = |more: Value| {
        let mut call = json!({"name": "await_answer", "arguments": {"question_id": id}});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let call = stateless(&mut client, call);
        client.answer_to(call)
    };
    let shown = wait(json!({}))["result"].clone();
    let again = wait(form_reply(&shown["requestState"], accepted("hello")))["result"].clone();
    let message = again["inputRequests"]["form"]["params"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("Asked again: the answer was not taken: (root): \"hello\" does not match"),
        "{again}"
    );
    assert_eq!(again["requestState"], id, "it begins anew");
    let told = wait(form_reply(&again["requestState"], accepted("T-1")));
    assert_eq!(envelope(&told)["data"]["answer"], "T-1");
}

#[test]
fn a_form_without_a_reply_to_it_comes_back_with_the_next_call() {
    let project = Project::with_feature();
    let capabilities = json!({"elicitation": {"form": {}}});
    // Long enough for a reply; what is shown and not replied to in time comes back anyway.
    let mut client = Client::start_with(&project, &["--wait-ms", "1000"], &[], &capabilities);
    let call = client.begin_call("ask_user", &choice());
    let shown = form_before_the_end_of(&mut client, call);
    let error = json!({"code": -32001, "message": "the window was closed by a timeout"});
    client.send(&json!({"jsonrpc": "2.0", "id": shown["id"], "error": error}));
    let told = envelope(&client.answer_to(call))["data"].clone();
    assert_eq!(told["status"], "pending", "{told}");
    let wait = json!({"question_id": told["question_id"]});
    let call = client.begin_call("await_answer", &wait);
    let shown = form_before_the_end_of(&mut client, call);
    reply(&mut client, &shown, &json!({"action": "accept", "content": {"answer": 7}}));
    assert_eq!(envelope(&client.answer_to(call))["data"]["status"], "pending");
    let call = client.begin_call("await_answer", &wait);
    let shown = form_before_the_end_of(&mut client, call);
    reply(&mut client, &shown, &json!({"action": "decline"}));
    assert_eq!(envelope(&client.answer_to(call))["data"]["status"], "pending");
    let call = client.begin_call("await_answer", &wait);
    assert_eq!(envelope(&client.answer_to(call))["data"]["status"], "pending");
    assert!(
        client.unread().iter().all(|message| message["method"] != "elicitation/create"),
        "what was declined is not shown again"
    );
}

#[test]
fn what_a_form_accepts_while_the_store_is_held_is_asked_again_and_not_lost_without_a_word() {
    let project = Project::with_feature();
    let mut client = with_forms(&project);
    let call = client.begin_call("ask_user", &choice());
    let shown = form_before_the_end_of(&mut client, call);
    let lock = std::fs::File::options().read(true).write(true).open(project.path(".aop/write.lock")).unwrap();
    lock.lock().unwrap();
    reply(&mut client, &shown, &accepted("right"));
    let shown = form_before_the_end_of(&mut client, call);
    let message = shown["params"]["message"].as_str().unwrap();
    assert!(message.contains("the answer was not taken: ") && message.contains("has not let go"), "{shown}");
    lock.unlock().unwrap();
    reply(&mut client, &shown, &accepted("right"));
    assert_eq!(envelope(&client.answer_to(call))["data"]["answer"], "right");
    client.close();
    project.assert_healthy();
}

#[test]
fn what_a_form_accepts_while_its_token_cannot_be_looked_up_is_asked_again_with_the_reason() {
    let project = Project::with_feature();
    let made = project.run(&["token", "create", "--kind", "operator", "--name", "ana"]).data();
    let variables = [("AOP_TOKEN", made["token"].as_str().unwrap())];
    let capabilities = json!({"elicitation": {"form": {}}});
    let mut client = Client::start_with(&project, &["--role", "human"], &variables, &capabilities);
    let call = client.begin_call("ask_user", &choice());
    // The server does one thing at a time: what it shows a form for it waits for already, and reads nothing more.
    let shown = form_before_the_end_of(&mut client, call);
    let (place, away) = (project.path(".aop/aop.db"), project.path(".aop/away.db"));
    std::fs::rename(&place, &away).unwrap();
    reply(&mut client, &shown, &accepted("right"));
    let shown = form_before_the_end_of(&mut client, call);
    let message = shown["params"]["message"].as_str().unwrap();
    assert!(message.contains("the answer was not taken: ") && message.contains("aop.db"), "{shown}");
    std::fs::rename(&away, &place).unwrap();
    reply(&mut client, &shown, &accepted("right"));
    let told = envelope(&client.answer_to(call))["data"].clone();
    assert_eq!((&told["answer"], &told["answered_by"]), (&json!("right"), &json!("ana")), "{told}");
    client.close();
    project.assert_healthy();
}

#[test]
fn a_form_shows_all_that_its_questions_are_about() {
    let project = Project::with_feature();
    let mut client = with_forms(&project);
    let spec = json!({"version": 1, "topic": "t", "questions": [{"id": "how", "header": "How",
        "question": "How should I go on?", "kind": "free_text", "required": true}]});
    for (more, last, answer) in [
        (json!({"choices": ["yes", "no"]}), "May I run this?", "no"),
        (json!({"spec": spec}), "How should I go on?", r#"{"how": "not at all"}"#),
    ] {
        let mut asked = json!({"prompt": "May I run this?", "question_type": "permission_override",
            "details": {"command": "rm -rf /srv/data"}});
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let call = client.begin_call("ask_user", &asked);
        let shown = form(&mut client);
        let message = shown["params"]["message"].as_str().unwrap();
        for part in ["asks for permission", "May I run this?", "command: rm -rf /srv/data"] {
            assert_eq!(message.matches(part).count(), 1, "{part} in {message}");
        }
        assert!(message.ends_with(last), "{message}");
        let question = project.run(&["questions"]).data()["items"][0].clone();
        project.answer_to(&question, answer).data();
        client.answer_to(call);
    }
}

#[test]
fn an_agent_with_a_credential_cannot_accept_its_own_question() {
    let project = Project::with_feature();
    let capabilities = json!({"elicitation": {"form": {}}});
    let mut client = Client::start_with(&project, &[], &[AGENT], &capabilities);
    let call = client.begin_call("ask_user", &choice());
    let question = project.opened_question();
    project.answer_to(&question, "left").data();
    assert_eq!(envelope(&client.answer_to(call))["data"]["answer"], "left");
    assert!(client.unread().iter().all(|message| message["method"] != "elicitation/create"));
}

/// A call of the stateless protocol, with what a second call brings along.
fn stateless(client: &mut Client, more: Value) -> u64 {
    stateless_ask(client, &choice(), more)
}

fn stateless_ask(client: &mut Client, arguments: &Value, more: Value) -> u64 {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "stateless", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
    let mut params = json!({"name": "ask_user", "arguments": arguments, "_meta": meta});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.begin("tools/call", params)
}

fn form_reply(state: &Value, reply: Value) -> Value {
    json!({"requestState": state, "inputResponses": {"form": reply}})
}

#[test]
fn a_client_without_a_handshake_gets_the_form_as_a_result_and_calls_again() {
    let project = Project::with_feature();
    let mut client = Client::connect(&mut project.command(&["mcp"]));
    let call = stateless(&mut client, json!({}));
    let shown = client.answer_to(call)["result"].clone();
    assert_eq!(shown["resultType"], "input_required", "{shown}");
    let request = &shown["inputRequests"]["form"];
    assert_eq!(request["method"], "elicitation/create", "{shown}");
    assert_eq!(request["params"]["message"], "Which one?", "{shown}");
    client.kill();
    // Nothing is kept but the question: another server takes the reply.
    let mut client = Client::connect(&mut project.command(&["mcp"]));
    let accepted = json!({"action": "accept", "content": {"answer": "right"}});
    let call = stateless(&mut client, form_reply(&shown["requestState"], accepted));
    assert_eq!(envelope(&client.answer_to(call))["data"]["answer"], "right");
    assert!(client.unread().is_empty(), "the stateless protocol has no requests from the server");
}

#[test]
fn a_stateless_form_that_is_declined_or_for_another_question_answers_nothing() {
    let project = Project::with_feature();
    let mut client = Client::connect(&mut project.command(&["mcp"]));
    let call = stateless(&mut client, json!({}));
    let state = client.answer_to(call)["result"]["requestState"].clone();
    let question = project.run(&["questions"]).data()["items"][0].clone();
    assert_eq!(state, question["question_id"]);
    let accepted = json!({"action": "accept", "content": {"answer": "right"}});
    let stray = stateless(&mut client, form_reply(&json!("q_01JAAAAAAAAAAAAAAAAAAAAAAA"), accepted));
    assert_eq!(
        client.answer_to(stray)["result"]["requestState"],
        state,
        "it is not used: the form comes again"
    );
    let declined = stateless(&mut client, form_reply(&state, json!({"action": "decline"})));
    project.answer_to(&question, "left").data();
    assert_eq!(envelope(&client.answer_to(declined))["data"]["answer"], "left");
}

#[test]
fn a_stateless_form_that_was_lost_comes_back_with_the_same_call_until_it_is_declined() {
    let project = Project::with_feature();
    let mut client = Client::connect(&mut project.command(&["mcp", "--wait-ms", "1"]));
    let call = stateless(&mut client, json!({}));
    let shown = client.answer_to(call)["result"].clone();
    let state = shown["requestState"].clone();
    let again = json!({});
    let wait = json!({"name": "await_answer", "arguments": {"question_id": state}});
    for call in [&again, &wait] {
        let call = stateless(&mut client, call.clone());
        assert_eq!(client.answer_to(call)["result"], shown);
    }
    // What is no reply to the form closes it for that call alone.
    for no_reply in [json!({"action": "accept", "content": {"answer": 7}}), json!(null)] {
        let call = stateless(&mut client, form_reply(&state, no_reply));
        assert_eq!(envelope(&client.answer_to(call))["data"]["status"], "pending");
        let call = stateless(&mut client, wait.clone());
        assert_eq!(client.answer_to(call)["result"], shown);
    }
    let no_reply = form_reply(&state, json!({"action": "accept", "content": {"answer": 7}}));
    // Once it was declined, what is no reply brings it back no more.
    for call in [&form_reply(&state, json!({"action": "decline"})), &again, &no_reply, &again, &wait] {
        let call = stateless(&mut client, call.clone());
        let told = envelope(&client.answer_to(call))["data"].clone();
        assert_eq!((&told["status"], &told["question_id"]), (&json!("pending"), &state));
    }
}

#[test]
fn what_a_stateless_form_accepts_in_several_rounds_is_one_answer() {
    let project = Project::with_feature();
    let options = json!([{"label": "S", "description": "small"}, {"label": "L", "description": "large"}]);
    let spec = json!({"version": 1, "topic": "t", "questions": [
        {"id": "sizes", "header": "Sizes", "question": "Which sizes?", "kind": "multi_choice", "required": true,
            "allow_other": true, "options": options},
        {"id": "first", "header": "First", "question": "Which first?", "kind": "single_choice", "required": true,
            "allow_other": true, "options": options}]});
    let ask = json!({"prompt": "The shop", "spec": spec});
    let mut more = json!({});
    // A text beside what was ticked may be followed by another; two answers to one choice are none.
    for (accepted, asks) in [
        (json!(null), "2 questions"),
        (json!({"sizes": ["L"], "sizes__other": "XL", "first": "L", "first__other": "XS"}), "2 questions"),
        (json!({"sizes": "Done", "first": "S"}), ""),
    ] {
        // Each round is another server's.
        let mut client = Client::connect(&mut project.command(&["mcp", "--feature-id", "shop"]));
        if !accepted.is_null() {
            more["inputResponses"] = json!({"form": {"action": "accept", "content": accepted}});
        }
        let call = stateless_ask(&mut client, &ask, more.clone());
        let answer = client.answer_to(call);
        if asks.is_empty() {
            assert_eq!(envelope(&answer)["data"]["answer"], json!({"sizes": ["L", "XL"], "first": "S"}));
        } else {
            let form = &answer["result"]["inputRequests"]["form"]["params"];
            assert!(form["message"].as_str().unwrap_or_default().contains(asks), "{answer}");
            more = json!({"requestState": answer["result"]["requestState"]});
        }
        client.close();
    }
    project.assert_healthy();
}

#[test]
fn a_stateless_reply_that_comes_again_answers_no_new_question() {
    let project = Project::with_feature();
    let mut client = Client::connect(&mut project.command(&["mcp"]));
    let call = stateless(&mut client, json!({}));
    let state = client.answer_to(call)["result"]["requestState"].clone();
    let accepted = form_reply(&state, json!({"action": "accept", "content": {"answer": "right"}}));
    let call = stateless(&mut client, accepted.clone());
    assert_eq!(envelope(&client.answer_to(call))["data"]["answer"], "right");
    let call = stateless(&mut client, accepted);
    let anew = client.answer_to(call)["result"].clone();
    assert_eq!(anew["resultType"], "input_required", "{anew}");
    let open = project.run(&["questions"]).data()["items"].clone();
    assert_eq!(open[0]["question_id"], anew["requestState"]);
    assert_ne!(anew["requestState"], state);
}

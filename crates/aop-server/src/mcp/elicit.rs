//! Elicitation: a client that offers it shows the question in its own interface, beside every other surface. The
//! form is an `aop-ask` dialogue. Only `accept` answers; decline and cancel close this surface alone. Whichever
//! surface answers first wins, and the form is taken back when that was another one. What was accepted and is no answer,
//! or could not be stored, is asked again with the reason: nobody takes for sent what was not.
//!
//! What a client accepts is taken for its user's word. So an agent that carries a credential is never shown a
//! form: it could accept its own question.

use super::{Handler, SURFACE};
use crate::details::details;
use crate::pages::words;
use aop_ask::{Answers, Dialogue, Options, Protocol, QuestionSpec, Step, Target};
use aop_kernel::ids::QuestionId;
use aop_kernel::own::OwnOperation;
use aop_kernel::question::{AnswerKind, Asked, Question};
use aop_kernel::role::{Caller, Role};
use aop_kernel::signs::visible;
use aop_kernel::tools::{Tool, own_request};
use aop_kernel::{ErrorCode, Refusal};
use rmcp::RoleServer;
use rmcp::model::{ElicitRequest, ElicitRequestParams, ProtocolVersion, ServerRequest};
use rmcp::service::{PeerRequestOptions, RequestContext, RequestHandle};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The one question of a form that was made for a question without one.
const LONE: &str = "answer";

/// So much of a detail is shown where nothing is allowed by it: a form of a client has no place to look further down.
const DETAIL: usize = 8_000;

/// So much of the schema of an answer is shown.
const SCHEMA: usize = 2_000;

/// Tells the replies of this process apart.
static REPLIES: AtomicU64 = AtomicU64::new(0);

/// Questions whose form is on display, or was declined (`true`) and is not shown again.
#[derive(Default)]
pub(super) struct Forms(Mutex<HashMap<QuestionId, bool>>);

impl Forms {
    fn map(&self) -> MutexGuard<'_, HashMap<QuestionId, bool>> {
        // A map of ids is whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is on display from now on, unless it is already or was declined.
    fn open(&self, id: &QuestionId) -> bool {
        match self.map().entry(id.clone()) {
            Entry::Vacant(place) => {
                place.insert(false);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// It was declined.
    fn close(&self, id: &QuestionId) {
        self.map().insert(id.clone(), true);
    }

    /// It is on display no more, and the next call shows it again, unless it was declined.
    fn free(&self, id: &QuestionId) {
        self.map().retain(|other, is_declined| *is_declined || other != id);
    }

    /// Whether it is not shown now.
    pub(super) fn is_closed(&self, id: &QuestionId) -> bool {
        self.map().contains_key(id)
    }
}

/// A form on its way to an answer.
pub(super) struct Form {
    /// As it begins …
    begin: Dialogue,
    /// … and as it stands after these replies.
    now: Dialogue,
    pub(super) replies: Vec<Value>,
    /// Why it began anew: what was accepted has answered nothing.
    again: Option<String>,
}

impl Form {
    fn new(begin: Dialogue) -> Self {
        Form { now: begin.clone(), begin, replies: Vec::new(), again: None }
    }

    /// Takes one reply, if it can be read as one.
    pub(super) fn reply(&mut self, reply: Value) -> Option<Step> {
        self.now.reply(&reply).ok()?;
        self.replies.push(reply);
        self.again = None;
        Some(self.now.next())
    }

    fn anew(self, why: String) -> Self {
        Form { again: Some(why), ..Form::new(self.begin) }
    }
}

/// What came of a reply.
enum Heard {
    /// This is left to ask, or asked again.
    Next(Box<Form>),
    /// It is not shown again.
    Declined,
    /// It has answered, or was no reply to this form.
    Over,
}

impl Handler {
    /// Waits as `until_closed` does, with the form on display where the client can show one.
    pub(super) async fn until_closed_anywhere(
        &self,
        asked: &Question,
        context: &RequestContext<RoleServer>,
    ) -> Result<Question, Refusal> {
        let mut wait = pin!(self.until_closed(asked, context));
        // A stateless client has had its form already.
        let mut form = if is_stateless(context) { None } else { self.offer(asked, context) };
        while let Some(open) = form.take() {
            let Some(mut shown) = show(asked, &open, context).await else {
                self.memory.forms.free(&asked.id);
                break;
            };
            tokio::select! {
                closed = &mut wait => {
                    // Answered elsewhere, or patience is over; a later wait may show it again.
                    self.memory.forms.free(&asked.id);
                    // A client that has gone needs no telling.
                    let _ = shown.cancel(Some("the question is not waited for here any more".into())).await;
                    return closed;
                }
                reply = &mut shown.rx => {
                    let reply = reply.ok().and_then(Result::ok).and_then(|reply| serde_json::to_value(reply).ok());
                    form = self.heard(asked, open, reply).await?;
                }
            }
        }
        wait.await
    }

    /// The form of an open question, if it is to be shown here and now: once at a time, and not after it was
    /// declined.
    fn offer(&self, asked: &Question, context: &RequestContext<RoleServer>) -> Option<Form> {
        let form = self.form(asked, context)?;
        self.memory.forms.open(&asked.id).then_some(form)
    }

    /// The form of an open question, for the client of whoever asked it.
    pub(super) fn form(&self, asked: &Question, context: &RequestContext<RoleServer>) -> Option<Form> {
        let offered = context.client_capabilities()?.elicitation?;
        // A client that names no modes has forms: they were there first.
        let forms = offered.form.is_some() || offered.url.is_none();
        if !(forms && self.elicits && asked.is_open() && !self.patience.is_zero() && self.is_asker(asked)) {
            return None;
        }
        let newer = speaks(context, &ProtocolVersion::V_2025_11_25);
        let protocol = if newer { Protocol::V2025_11_25 } else { Protocol::V2025_06_18 };
        let spec = asked.asked.spec.clone().or_else(|| lone_spec(asked))?;
        let options = Options { protocol, ..Options::default() };
        // Refused for secrets, which other surfaces take.
        Dialogue::start(spec, Target::Elicitation, options).ok().map(Form::new)
    }

    /// Takes a reply. What is left to ask or asked again, if anything is. Only a form that was declined stays closed.
    pub(super) async fn heard(
        &self,
        asked: &Question,
        form: Form,
        reply: Option<Value>,
    ) -> Result<Option<Form>, Refusal> {
        let heard = self.weighed(asked, form, reply).await;
        match heard {
            Ok(Heard::Next(form)) => return Ok(Some(*form)),
            Ok(Heard::Declined) => self.memory.forms.close(&asked.id),
            Ok(Heard::Over) | Err(_) => self.memory.forms.free(&asked.id),
        }
        heard.map(|_| None)
    }

    async fn weighed(
        &self,
        asked: &Question,
        mut form: Form,
        reply: Option<Value>,
    ) -> Result<Heard, Refusal> {
        // The form may have been shown to somebody whose token is not good any more.
        let admitted = match self.admitted().await {
            Err(refusal) if refusal.code == ErrorCode::Unauthenticated => return Err(refusal),
            // A store that cannot be reached says nothing against the token, and takes no answer.
            admitted => admitted,
        };
        Ok(match reply.and_then(|reply| form.reply(reply)) {
            None => Heard::Over,
            Some(Step::Ask(_)) => Heard::Next(Box::new(form)),
            Some(Step::Escaped { .. }) => Heard::Declined,
            Some(Step::Done(answers)) => {
                let accepted = match admitted {
                    Ok(()) => self.accept(asked, &answers).await,
                    Err(refusal) => Err(refusal),
                };
                match accepted {
                    Ok(()) => Heard::Over,
                    // Another surface was first, and the wait sees whose answer it is.
                    Err(_) if self.question(&asked.id).await.is_ok_and(|now| !now.is_open()) => Heard::Over,
                    Err(refusal) => Heard::Next(Box::new(form.anew(refusal.reasons().join("; ")))),
                }
            }
        })
    }

    /// Answers with what was accepted.
    async fn accept(&self, asked: &Question, answers: &Answers) -> Result<(), Refusal> {
        let answer = answers.to_json();
        let answer = if asked.asked.spec.is_some() { answer } else { answer[LONE].clone() };
        let number = REPLIES.fetch_add(1, Ordering::Relaxed);
        let id = OwnOperation::Elicit.id(format_args!("{}_{}_{number}", asked.id, std::process::id()))?;
        let input = json!({"feature_id": asked.feature_id, "question_id": asked.id, "answer": answer,
            "answered_by": self.signs.as_deref().unwrap_or("human")});
        let human = Caller::new(Role::Human);
        let request = own_request(Tool::QuestionAnswer, &human, &input, id, SURFACE, &self.service.rules)?;
        self.service.submit(request).await.map(drop)
    }
}

/// Puts the next request of the form to the client.
async fn show(
    asked: &Question,
    form: &Form,
    context: &RequestContext<RoleServer>,
) -> Option<RequestHandle<RoleServer>> {
    let request = ServerRequest::ElicitRequest(elicitation(asked, form)?);
    context.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.ok()
}

/// The next request of the form.
pub(super) fn elicitation(asked: &Question, form: &Form) -> Option<ElicitRequest> {
    let Step::Ask(request) = form.now.next() else { return None };
    let mut input = request.input;
    input["mode"] = json!("form");
    if asked.asked.spec.is_none() {
        plain_titles(&mut input);
    }
    if asked.asked.question_type.grants() {
        hide_nothing(&mut input);
    }
    if let Some(message) = input["message"].as_str() {
        input["message"] = json!(all_of_it(&asked.asked, message, form.again.as_deref()));
    }
    serde_json::from_value::<ElicitRequestParams>(input).ok().map(ElicitRequest::new)
}

/// What the form asks, behind what its questions are about: whoever accepts it decides on that. After
/// it what the answer has to be like, and why it is asked again.
fn all_of_it(asked: &Asked, message: &str, again: Option<&str>) -> String {
    let warning = words::caution(asked).map(str::to_owned);
    // A question without a form of its own is the message.
    let prompt = asked.spec.is_some().then(|| match asked.question_type.grants() {
        true => visible(&asked.prompt),
        false => asked.prompt.clone(),
    });
    let in_part = |text: String| match words::cut(&text, DETAIL) {
        part if part == text || asked.question_type.grants() => text,
        part => format!("{part}\n(all of it: `aop questions --json`)"),
    };
    let details = details(asked).into_iter().map(|(name, text)| (name, in_part(text)));
    let details = details.map(|(name, text)| match text.contains('\n') {
        true => format!("{name}:\n{text}"),
        false => format!("{name}: {text}"),
    });
    // An engine's own interaction takes any text.
    let is_held = |kind| {
        asked.interaction.is_none() || !matches!(kind, AnswerKind::SingleChoice | AnswerKind::FreeText)
    };
    let expected = asked.expected_answer.as_ref().filter(|expected| is_held(expected.kind));
    let schema = expected.and_then(|expected| expected.schema.as_ref()).map(|schema| {
        format!(
            "The answer has to satisfy this schema: {}",
            words::cut(&visible(&schema.to_string()), SCHEMA)
        )
    });
    let before = warning.into_iter().chain(prompt).chain(details);
    let again =
        again.map(|why| format!("Asked again: the answer was not taken: {}.", why.trim_end_matches('.')));
    let parts: Vec<String> = before.chain([message.to_owned()]).chain(schema).chain(again).collect();
    parts.join("\n\n")
}

/// Whether the client speaks this version or a later one. Versions are dates and sort as text.
fn speaks(context: &RequestContext<RoleServer>, version: &ProtocolVersion) -> bool {
    context.protocol_version().is_some_and(|spoken| spoken.as_str() >= version.as_str())
}

/// Whether the protocol has no requests from server to client. The library does not hold us back from sending one.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    speaks(context, &ProtocolVersion::V_2026_07_28)
}

/// A question without a form as a form with one question. JSON has no field to type it in.
fn lone_spec(asked: &Question) -> Option<QuestionSpec> {
    let expected = asked.asked.expected_answer.as_ref();
    let kind = expected.map_or(AnswerKind::FreeText, |expected| expected.kind);
    let mut question = json!({"id": LONE, "header": "Answer", "question": asked.asked.prompt,
        "kind": kind.as_str(), "required": true});
    match kind {
        AnswerKind::FreeText => {}
        AnswerKind::SingleChoice | AnswerKind::MultiChoice => {
            let choices = expected.and_then(|expected| expected.choices.as_ref())?;
            let options = choices.iter().map(|choice| json!({"label": choice, "description": choice}));
            question["options"] = options.collect();
            question["allow_other"] = json!(expected.and_then(|expected| expected.allow_other) == Some(true));
        }
        AnswerKind::Json | AnswerKind::Form => return None,
    }
    QuestionSpec::from_json(&json!({"version": 1, "topic": "question", "questions": [question]})).ok()
}

/// A choice that is its own description is shown once.
fn plain_titles(input: &mut Value) {
    let field = &mut input["requestedSchema"]["properties"][LONE];
    for list in ["/oneOf", "/items/anyOf"] {
        for option in field.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            option["title"] = option["const"].clone();
        }
    }
    if field.get("enumNames").is_some() {
        field["enumNames"] = field["enum"].clone();
    }
}

/// People allow what they see: neither does the form's own text hide a sign. What is answered stays as it is.
fn hide_nothing(input: &mut Value) {
    let show = |text: &mut Value| {
        if let Some(shown) = text.as_str().map(visible) {
            *text = json!(shown);
        }
    };
    show(&mut input["message"]);
    let fields = input["requestedSchema"]["properties"].as_object_mut();
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        for place in ["/title", "/description"] {
            field.pointer_mut(place).into_iter().for_each(show);
        }
        for list in ["/oneOf", "/items/anyOf"] {
            let options = field.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            options.filter_map(|option| option.get_mut("title")).for_each(show);
        }
        field.pointer_mut("/enumNames").and_then(Value::as_array_mut).into_iter().flatten().for_each(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Door;
    use crate::pages::fixture::World;
    use crate::tokens::{self, NewToken, TokenKind};
    use tokio::sync::watch;

    /// A server for the person whose token this is.
    fn server(world: &World, token: String) -> Handler {
        let door = Door { elicits: true, token: Some(token), ..world.door(Caller::new(Role::Human)) };
        Handler::new(door, watch::channel(false).1)
    }

    #[test]
    fn a_detail_that_is_cut_says_where_the_rest_is_and_one_that_is_allowed_is_not_cut() {
        for (kind, is_whole) in [("clarification", false), ("permission_override", true)] {
            let details = json!({"input": format!("{}end", "x".repeat(2 * DETAIL))});
            let asked = crate::pages::fixture::asked(json!({"question_type": kind, "details": details}));
            let text = all_of_it(&asked, "Which?", None);
            assert_eq!(text.contains("xend"), is_whole, "{kind}");
            assert_eq!(
                text.contains("x…\n(all of it: `aop questions --json`)\n\nWhich?"),
                !is_whole,
                "{kind}"
            );
        }
    }

    #[tokio::test]
    async fn a_form_that_allows_something_hides_no_sign_and_its_answers_stay_as_they_are() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        let option = |label: &str| json!({"label": label, "description": "de\u{200b}lete"});
        let field = |id: &str, kind: &str| {
            json!({"id": id, "header": "Al\u{200b}low", "question": "Now\u{200b}?", "kind": kind, "required": true,
                "options": [option("y\u{200b}es"), option("no")]})
        };
        let spec = json!({"version": 1, "topic": "t", "questions": [field("a", "single_choice"), field("b", "multi_choice")]});
        let asks = json!({"question_type": "permission_override", "spec": spec});
        let id = QuestionId::parse(&world.ask("shop", asks).await).unwrap();
        let question = world.service.store.question(id).await.unwrap().unwrap();
        for protocol in [Protocol::V2025_06_18, Protocol::V2025_11_25] {
            let options = Options { protocol, ..Options::default() };
            let spec = question.asked.spec.clone().unwrap();
            let form = Form::new(Dialogue::start(spec, Target::Elicitation, options).unwrap());
            let request = serde_json::to_value(elicitation(&question, &form).unwrap()).unwrap().to_string();
            // The label stands once for each choice as what is answered.
            assert_eq!(request.matches('\u{200b}').count(), 2, "{request}");
            for shown in ["Al⟨U+200B⟩low", "Now⟨U+200B⟩?", "y⟨U+200B⟩es: de⟨U+200B⟩lete"] {
                assert!(request.contains(shown), "{shown}: {request}");
            }
        }
    }

    #[tokio::test]
    async fn what_a_form_accepts_when_its_token_is_good_no_more_is_no_answer() {
        let world = World::new().await;
        world.feature("shop", "Shop").await;
        let store = world.service.store.as_ref();
        for (case, answers) in [("good", true), ("revoked", false), ("expired", false)] {
            let (kind, role, lives_ms) = (TokenKind::Operator, Role::Human, Some(1_000));
            let new = NewToken { kind, name: None, role, feature: None, lives_ms };
            let (token, _) = tokens::create(store, new).await.unwrap();
            let handler = server(&world, token.token_id.clone());
            let id = QuestionId::parse(&world.ask("shop", json!({})).await).unwrap();
            let asked = handler.question(&id).await.unwrap();
            let form = Dialogue::start(lone_spec(&asked).unwrap(), Target::Elicitation, Options::default());
            let form = Form::new(form.unwrap());
            match case {
                "revoked" => drop(tokens::revoke(store, &token.token_id).await.unwrap()),
                "expired" => world.clock.advance(1_000),
                _ => {}
            }
            let reply = json!({"action": "accept", "content": {LONE: "this"}});
            match handler.heard(&asked, form, Some(reply)).await {
                Ok(next) => assert!(answers && next.is_none(), "{case}"),
                Err(refusal) => assert_eq!(refusal.code, ErrorCode::Unauthenticated, "{case}"),
            }
            assert_eq!(!handler.question(&id).await.unwrap().is_open(), answers, "{case}");
            if !answers {
                world.answer("shop", id.as_str(), json!("that")).await;
            }
        }
    }
}

//! `ask_user` and `await_answer`: asking in one call, for agents that no runner supervises. They are the same
//! question as `feature.question_create` makes; what is added is who asks, and an operation id that belongs to the
//! call, so that the same call again finds the same question.

use super::args::{Args, mistyped, wrong};
use super::digest::{Sorted, digest, without_defaults};
use super::schema::{blocking, closed_object, flag, object, question_id, question_type, spec, text};
use crate::envelope::Refusal;
use crate::ids::{OperationId, QuestionId};
use crate::own::{OwnId, OwnOperation};
use crate::question::{QuestionType, against_choices};
use crate::role::Caller;
use serde_json::{Value, json};

/// Asks and waits a while.
pub const ASK_USER: &str = "ask_user";

/// The same under a name that is free in Gemini CLI, which without a terminal hides every tool called `ask_user`, also
/// those of MCP servers.
pub const ASK_HUMAN: &str = "ask_human";

/// Goes on waiting.
pub const AWAIT_ANSWER: &str = "await_answer";

/// The arguments of `ask_user`, as far as they can be checked alone.
#[derive(Debug, Clone, PartialEq)]
pub struct AskUser {
    /// The question in words.
    pub prompt: String,
    /// The arguments of `feature.question_create` that come from the asker.
    asked: Value,
}

/// What tells one call from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallIdentity<'a> {
    /// The client names its calls, each for ever.
    Named(&'a str),
    /// It does not: the content names the call, within a session and counted from 0.
    Content {
        /// Whose content.
        session: &'a str,
        /// How often the same was asked, and its end told, before.
        round: u32,
    },
}

fn texts(choices: &Value) -> Result<Vec<String>, Refusal> {
    let texts = choices.as_array().map(|list| list.iter().map(|text| text.as_str().map(str::to_owned)));
    texts.and_then(Iterator::collect).ok_or_else(|| mistyped("choices", "a list of texts", choices))
}

impl AskUser {
    /// Reads the arguments; what they mean together with the project's rules is checked when it is asked.
    pub fn parse(input: &Value) -> Result<Self, Refusal> {
        let mut args = Args::new(ASK_USER, input)?;
        let prompt = args.text("prompt")?;
        let choices = args.optional("choices").map(texts).transpose()?;
        let allow_other = args.optional_bool("allow_other")?;
        let spec = args.optional("spec");
        let question_type = args.optional_text("question_type")?.unwrap_or_else(|| "clarification".into());
        let details = args.optional_object("details")?;
        let blocking = args.optional_bool("blocking")?.unwrap_or(true);
        args.finish()?;
        if choices.is_some() && spec.is_some() {
            return Err(wrong("choices", "choices and spec are both given".into())
                .hint("give choices for one question, or a spec for a form"));
        }
        if allow_other.is_some() && choices.is_none() {
            return Err(wrong("allow_other", "allow_other is given without choices".into())
                .hint("leave it out: without choices any text is an answer"));
        }
        if let Some(reason) = choices.as_deref().and_then(against_choices) {
            return Err(wrong("choices", format!("choices {reason}")));
        }
        // Said or not, it is the same question.
        let allow_other = allow_other.filter(|allow_other| *allow_other);
        let expected = choices
            .map(|choices| json!({"kind": "single_choice", "choices": choices, "allow_other": allow_other}));
        let asked = json!({"prompt": prompt, "expected_answer": expected, "spec": spec,
            "question_type": question_type, "details": details, "blocking": blocking});
        Ok(AskUser { prompt, asked })
    }

    /// Whether it asks for a permission, or for a risk to be taken.
    pub fn grants(&self) -> bool {
        QuestionType::named_in(&self.asked).is_some_and(QuestionType::grants)
    }

    /// The operation id of this call.
    pub fn operation(&self, caller: &Caller, identity: CallIdentity<'_>) -> Result<OwnId, Refusal> {
        let named = match identity {
            CallIdentity::Named(call) => json!({"call": call}),
            CallIdentity::Content { session, round } => {
                let mut asked = self.asked.clone();
                asked["spec"] = without_defaults(asked["spec"].take());
                json!({"session": session, "round": round, "feature": caller.feature, "asked": asked})
            }
        };
        OwnOperation::AskUser.id(digest(ASK_USER, caller.role, &Sorted(&named)))
    }

    /// The arguments of `feature.question_create`, without the operation id.
    pub fn create(&self, caller: &Caller, feature: &str, session: &str) -> Value {
        let mut input = self.asked.clone();
        input["feature_id"] = json!(feature);
        input["role"] = json!(caller.role);
        input["session_id"] = json!(session);
        input
    }

    /// The schema of its arguments.
    pub fn input_schema() -> Value {
        let choices = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true,
            "description": "The answers to choose from. Leave out for a free answer."});
        closed_object(vec![
            ("prompt", true, text("The question in words, complete: the human sees nothing else.")),
            ("choices", false, choices),
            ("allow_other", false, flag("Whether text outside the choices is an answer too.")),
            ("spec", false, spec()),
            ("question_type", false, question_type()),
            ("details", false, object("Anything else that should be shown.")),
            ("blocking", false, blocking()),
        ])
    }
}

/// The feature that a question without one brings along. It belongs to the operation, so that a retry finds it. Where the
/// operation's name tells when it was made, so does the feature's: features stand in the store by name, and those that are
/// asked for together are read together.
pub fn lone_feature(operation: &OperationId) -> String {
    if let Some(ulid) = operation.ulid() {
        return format!("ask-{}", ulid.to_ascii_lowercase());
    }
    let hash = operation.as_str().bytes().fold(
        [0xcbf2_9ce4_8422_2325_u64, 0x9e37_79b9_7f4a_7c15],
        |[a, b], byte| {
            // Two FNV-1a streams: not secret, only spread out.
            let step = |state: u64, salt: u8| (state ^ u64::from(byte ^ salt)).wrapping_mul(0x0100_0000_01b3);
            [step(a, 0), step(b, 0x5a)]
        },
    );
    format!("ask-{:016x}{:016x}", hash[0], hash[1])
}

/// Whether a feature is called as [`lone_feature`] calls them: its id tells people nothing.
pub fn is_lone_feature(id: &crate::ids::FeatureId) -> bool {
    let name = id.as_str().strip_prefix("ask-").unwrap_or_default();
    matches!(name.len(), 26 | 32) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Reads the arguments of `await_answer`.
pub fn await_answer(input: &Value) -> Result<QuestionId, Refusal> {
    let mut args = Args::new(AWAIT_ANSWER, input)?;
    let id = args.id("question_id", QuestionId::parse)?;
    args.finish()?;
    Ok(id)
}

/// The schema of the arguments of `await_answer`.
pub fn await_answer_schema() -> Value {
    closed_object(vec![("question_id", true, question_id())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;

    fn asks(input: Value) -> AskUser {
        AskUser::parse(&input).unwrap()
    }

    #[test]
    fn the_same_call_is_the_same_operation_whatever_the_order_of_keys() {
        let caller = Caller::new(Role::Builder);
        let one = asks(json!({"prompt": "Which?", "choices": ["a", "b"], "details": {"x": 1, "y": 2}}));
        let other = asks(json!({"details": {"y": 2, "x": 1}, "choices": ["a", "b"], "prompt": "Which?"}));
        let identity = |round| CallIdentity::Content { session: "s", round };
        let operation = |ask: &AskUser, identity| ask.operation(&caller, identity).unwrap();
        assert_eq!(operation(&one, identity(0)), operation(&other, identity(0)));
        assert_ne!(operation(&one, identity(0)), operation(&one, identity(1)));
        let elsewhere = CallIdentity::Content { session: "t", round: 0 };
        assert_ne!(operation(&one, identity(0)), operation(&one, elsewhere));
        let named = CallIdentity::Named("toolu_1");
        assert_eq!(operation(&one, named), operation(&asks(json!({"prompt": "Else"})), named));
    }

    #[test]
    fn choices_that_cannot_be_taken_are_named_as_the_caller_names_them() {
        for (choices, said) in [
            (json!([]), "choices is empty"),
            (json!(["a", " "]), "choices has a blank text at place 2"),
            (json!(["a", "a"]), "choices has 'a' twice"),
            (json!(["__done__"]), "choices has '__done__', which is reserved for navigation"),
            (json!("a"), "choices is a list of texts, not '\"a\"'"),
            (json!(["a", 1]), "choices is a list of texts, not '[\"a\",1]'"),
        ] {
            let refusal = AskUser::parse(&json!({"prompt": "Which?", "choices": choices})).unwrap_err();
            assert_eq!((refusal.message.as_str(), &refusal.facts["argument"]), (said, &json!("choices")));
        }
    }

    #[test]
    fn the_feature_of_a_lone_question_belongs_to_its_operation() {
        let operation = OperationId::parse("op_1").unwrap();
        assert_eq!(lone_feature(&operation), lone_feature(&operation));
        let other = OperationId::parse("op_2").unwrap();
        assert_ne!(lone_feature(&operation), lone_feature(&other));
        assert!(crate::ids::FeatureId::parse(&lone_feature(&other)).is_ok());
    }

    #[test]
    fn a_call_that_says_a_default_is_the_call_that_does_not() {
        let of = |input: Value| {
            let identity = CallIdentity::Content { session: "s", round: 0 };
            asks(input).operation(&Caller::new(Role::Builder), identity).unwrap()
        };
        let spec = |flag: Value| {
            let mut question = json!({"id": "x", "header": "H", "question": "Q?", "kind": "single_choice",
                "required": true, "options": [{"label": "A", "description": "a"}]});
            question.as_object_mut().unwrap().extend(flag.as_object().unwrap().clone());
            json!({"prompt": "p", "spec": {"version": 1, "topic": "t", "questions": [question]}})
        };
        let choices =
            |allow_other: Value| json!({"prompt": "p", "choices": ["a"], "allow_other": allow_other});
        assert_eq!(of(choices(Value::Null)), of(choices(json!(false))));
        assert_ne!(of(choices(Value::Null)), of(choices(json!(true))));
        assert_eq!(of(spec(json!({}))), of(spec(json!({"allow_other": false, "secret": false}))));
        assert_ne!(of(spec(json!({}))), of(spec(json!({"allow_other": true}))));
    }

    #[test]
    fn lone_features_of_operations_that_tell_their_time_stand_in_its_order() {
        let feature = |id: &str| lone_feature(&OperationId::parse(id).unwrap());
        let first = feature("op_01J9ZQ4V7K3M2N1P0R5S6T7V8W");
        assert_eq!(first, "ask-01j9zq4v7k3m2n1p0r5s6t7v8w");
        let is_lone = |id: &str| is_lone_feature(&crate::ids::FeatureId::parse(id).unwrap());
        assert!(is_lone(&first) && is_lone(&feature("deploy")) && !is_lone("ask-me") && !is_lone("shop"));
        assert!(first < feature("op_01J9ZQ4V7M0000000000000000"));
        // Whoever names operations otherwise may not meet these by chance.
        for other in
            ["op_01j9zq4v7k3m2n1p0r5s6t7v8w", "01J9ZQ4V7K3M2N1P0R5S6T7V8W", "op_81J9ZQ4V7K3M2N1P0R5S6T7V8W"]
        {
            assert_eq!(feature(other).len(), "ask-".len() + 32, "{other}");
        }
    }

    #[test]
    fn arguments_that_do_not_go_together_are_refused_by_name() {
        for (input, argument) in [
            (json!({}), "prompt"),
            (json!({"prompt": " "}), "prompt"),
            (json!({"prompt": "p", "choices": ["a"], "spec": {}}), "choices"),
            (json!({"prompt": "p", "allow_other": true}), "allow_other"),
            (json!({"prompt": "p", "operation_id": "x"}), "operation_id"),
        ] {
            assert_eq!(AskUser::parse(&input).unwrap_err().facts["argument"], argument, "{input}");
        }
        assert!(await_answer(&json!({"question_id": "q"})).is_err());
    }

    #[test]
    fn the_schemas_name_the_arguments_that_are_taken() {
        let known = |refusal: Refusal| -> Vec<String> {
            refusal.hint.trim_start_matches("it takes ").split(", ").map(str::to_owned).collect()
        };
        let keys = |schema: Value| -> Vec<String> {
            schema["properties"].as_object().unwrap().keys().cloned().collect()
        };
        let refusal = AskUser::parse(&json!({"prompt": "p", "nonsense": 1})).unwrap_err();
        assert_eq!(known(refusal), keys(AskUser::input_schema()));
        let id = "q_01JAAAAAAAAAAAAAAAAAAAAAAA";
        let refusal = await_answer(&json!({"question_id": id, "nonsense": 1})).unwrap_err();
        assert_eq!(known(refusal), keys(await_answer_schema()));
    }
}

//! Dialogues: a spec is put to a human through one target, native request by native request, until its
//! answers are complete.
//!
//! A [`Dialogue`] is event-sourced. It holds the spec, the settings and the native replies so far; where
//! each question stands is folded from those. So it can be written down at any point and read back in
//! another process, and going back a step is forgetting the last reply. Whatever the human means, every
//! target ends in the same answers: that law is property-tested.

pub(crate) mod ask;
pub(crate) mod joined;
pub mod route;
pub(crate) mod surface;
pub(crate) mod walk;
pub(crate) mod wording;

use crate::answer::{AnswerSpec, Answers};
use crate::spec::QuestionSpec;
use crate::target::{self, Heard};
use crate::violation::Violation;
use ask::{Ask, Said};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;
use surface::Surface;
use walk::{End, Then, Walk};

/// Through which tool a spec is put to a human.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// `AskUserQuestion`.
    ClaudeCode,
    /// `request_user_input`.
    Codex,
    /// A prompt that asks for one JSON object.
    StrictText,
    /// MCP form elicitation.
    Elicitation,
    /// A prompt on a terminal.
    Terminal,
}

impl Target {
    /// Every target.
    pub const ALL: [Target; 5] =
        [Target::ClaudeCode, Target::Codex, Target::StrictText, Target::Elicitation, Target::Terminal];

    /// The name on command lines and in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Target::ClaudeCode => "claude-code",
            Target::Codex => "codex",
            Target::StrictText => "strict-text",
            Target::Elicitation => "elicitation",
            Target::Terminal => "terminal",
        }
    }

    /// What to use where this target's tool is not offered.
    pub fn fallback(self) -> Target {
        match self {
            Target::ClaudeCode | Target::Codex | Target::Elicitation | Target::StrictText => {
                Target::StrictText
            }
            Target::Terminal => Target::Terminal,
        }
    }
}

/// What Esc does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEscape {
    /// Ends the dialogue for good.
    #[default]
    Terminate,
    /// Takes the last reply back.
    ReturnPrevious,
    /// Ends the dialogue for now.
    Defer,
}

/// The MCP version that an elicitation speaks; only the newer one has lists of choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Protocol {
    /// No lists: several choices are asked for one by one.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// Lists of choices in one form.
    #[default]
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
}

/// Settings of a dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// What Esc does.
    pub on_escape: OnEscape,
    /// Which MCP version an elicitation speaks.
    pub protocol: Protocol,
}

/// A native request: which tool, and its arguments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// The tool's own name.
    pub tool: &'static str,
    /// The tool's own arguments.
    pub input: Value,
}

/// Where a dialogue stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Put this to the human and hand the reply to [`Dialogue::reply`].
    Ask(Request),
    /// Every required question is answered.
    Done(Answers),
    /// The human pressed Esc; `escaped` says whether for good (`terminate`) or for now (`defer`).
    Escaped {
        /// Which end it is.
        escaped: OnEscape,
        /// What was said before.
        answers_so_far: Value,
    },
}

/// A spec on its way through a target.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Dialogue {
    spec: QuestionSpec,
    target: Target,
    options: Options,
    replies: Vec<Value>,
    walks: Vec<Walk>,
    escaped: bool,
}

/// What of a dialogue is written down. The rest follows from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    spec: QuestionSpec,
    target: Target,
    options: Options,
    replies: Vec<Value>,
}

impl Dialogue {
    /// Begins.
    ///
    /// # Errors
    /// The target may not be used for this spec: secrets never go through elicitation.
    pub fn start(spec: QuestionSpec, target: Target, options: Options) -> Result<Self, Violation> {
        if target == Target::Elicitation
            && let Some(index) = spec.questions().iter().position(super::spec::Question::secret)
        {
            return Err(Violation {
                code: "secret_not_for_elicitation",
                path: format!("/questions/{index}/secret"),
                message: format!(
                    "the question \"{}\" is secret, and elicitation may not ask for secrets",
                    spec.questions()[index].id()
                ),
                hint: "use the terminal, or another target".to_owned(),
            });
        }
        let walks = vec![Walk::default(); spec.questions().len()];
        Ok(Dialogue { spec, target, options, replies: Vec::new(), walks, escaped: false })
    }

    /// The spec that is asked.
    pub fn spec(&self) -> &QuestionSpec {
        &self.spec
    }

    /// Where the dialogue stands. The same state gives the same request, byte for byte.
    pub fn next(&self) -> Step {
        if self.escaped {
            return Step::Escaped { escaped: self.options.on_escape, answers_so_far: self.so_far() };
        }
        let asks = self.asks();
        if asks.is_empty() {
            let answered = |(walk, question): (&Walk, &super::spec::Question)| match &walk.end {
                Some(End::Answered(value)) => Some((question.id().to_owned(), value.clone())),
                Some(End::Absent) | None => None,
            };
            let entries = self.walks.iter().zip(self.spec.questions()).filter_map(answered).collect();
            return Step::Done(Answers::from_entries(entries));
        }
        Step::Ask(target::request(self.target, &self.spec, self.options.protocol, &asks))
    }

    /// Takes one native reply, or `{"escaped": true}` for Esc.
    ///
    /// # Errors
    /// The value is not what this target's tool returns, or nothing is being asked any more.
    pub fn reply(&mut self, reply: &Value) -> Result<(), Violation> {
        let asks = self.asks();
        if self.escaped || asks.is_empty() {
            return Err(Violation {
                code: "dialogue_over",
                path: String::new(),
                message: "a reply came after the dialogue had ended".to_owned(),
                hint: "remove it; nothing was being asked".to_owned(),
            });
        }
        let heard = match reply {
            Value::Object(map) if map.get("escaped") == Some(&Value::Bool(true)) => Heard::Escaped,
            _ => target::heard(self.target, &asks, reply)?,
        };
        match heard {
            Heard::Escaped => self.escape(reply),
            Heard::Said(said) => {
                let indices: Vec<usize> = asks.iter().map(|ask| ask.index).collect();
                drop(asks);
                self.take(&indices, said);
                self.replies.push(reply.clone());
                Ok(())
            }
        }
    }

    fn take(&mut self, indices: &[usize], said: Vec<Said>) {
        let surface = self.surface();
        for (&index, said) in indices.iter().zip(said) {
            let walk = &self.walks[index];
            let ask = walk.ask(index, &self.spec.questions()[index], &surface);
            let then = self.walks[index].take(&ask, said);
            if then == Then::Previous {
                match index.checked_sub(1) {
                    Some(previous) => self.walks[previous] = Walk::default(),
                    None => self.walks[index].remark("This is the first question.".to_owned()),
                }
            }
        }
    }

    fn escape(&mut self, reply: &Value) -> Result<(), Violation> {
        match self.options.on_escape {
            OnEscape::Terminate | OnEscape::Defer => {
                self.replies.push(reply.clone());
                self.escaped = true;
                Ok(())
            }
            OnEscape::ReturnPrevious => {
                let mut replies = std::mem::take(&mut self.replies);
                replies.pop();
                self.walks.fill(Walk::default());
                replies.iter().try_for_each(|reply| self.reply(reply))
            }
        }
    }

    /// The native questions of the next request: as many open questions as the target takes at once, in the
    /// author's order. A tool may key its replies by the text, so neither the texts nor the questions they
    /// belong to may be the same: a human could not tell two steps of one wording apart either.
    fn asks(&self) -> Vec<Ask<'_>> {
        let surface = self.surface();
        let mut texts = HashSet::new();
        let mut asks = Vec::new();
        for (index, (walk, question)) in self.walks.iter().zip(self.spec.questions()).enumerate() {
            if walk.end.is_some() {
                continue;
            }
            let ask = walk.ask(index, question, &surface);
            let told_apart = !texts.contains(question.question()) && !texts.contains(&ask.text);
            if asks.len() == surface.batch || (self.target == Target::ClaudeCode && !told_apart) {
                break;
            }
            texts.extend([question.question().to_owned(), ask.text.clone()]);
            asks.push(ask);
        }
        asks
    }

    fn surface(&self) -> Surface {
        Surface::of(self.target, self.options.protocol)
    }

    /// Ids of the questions that are still to be settled, in the author's order.
    pub fn unanswered(&self) -> Vec<&str> {
        let open = self.walks.iter().zip(self.spec.questions()).filter(|(walk, _)| walk.end.is_none());
        open.map(|(_, question)| question.id()).collect()
    }

    fn so_far(&self) -> Value {
        let entries = self.walks.iter().zip(self.spec.questions()).filter_map(|(walk, question)| {
            Some((question.id().to_owned(), walk.so_far(question)?.to_json()))
        });
        Value::Object(entries.collect())
    }

    /// The dialogue's state as commands print it: the next native request, or the end.
    ///
    /// # Errors
    /// `answered_at` or `answered_by` cannot stand in a record.
    pub fn report(&self, answered_at: &str, answered_by: &str) -> Result<Value, Vec<Violation>> {
        Ok(match self.next() {
            Step::Ask(next) => json!({"done": false, "next": next, "unanswered": self.unanswered()}),
            Step::Done(answers) => {
                json!({"done": true, "answer": AnswerSpec::new(&self.spec, &answers, answered_at, answered_by)?})
            }
            Step::Escaped { escaped, answers_so_far } => {
                json!({"done": true, "escaped": escaped, "answers_so_far": answers_so_far})
            }
        })
    }
}

impl From<Dialogue> for Written {
    fn from(dialogue: Dialogue) -> Self {
        let Dialogue { spec, target, options, replies, .. } = dialogue;
        Written { spec, target, options, replies }
    }
}

impl TryFrom<Written> for Dialogue {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let mut dialogue = Dialogue::start(written.spec, written.target, written.options)
            .map_err(|violation| violation.to_string())?;
        for reply in &written.replies {
            dialogue.reply(reply).map_err(|violation| violation.to_string())?;
        }
        Ok(dialogue)
    }
}

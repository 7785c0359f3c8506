//! The form of a question: its fields, what somebody typed into them, and the answer that makes. Whether it is one
//! is decided where every answer is; what comes back is put beside the field it is about.

use super::markdown;
use aop_ask::is_blank;
use aop_ask::spec::{Kind, Question as Asks};
use aop_kernel::question::{AnswerKind, Asked, Offered, QuestionType};
use aop_kernel::signs::{label, visible};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The name of the field for an answer in one's own words.
const WORDS: &str = "words";
/// The name of the field for why a question is withdrawn or asked again.
pub(super) const NOTE: &str = "note";
/// How the name of a field for text ends.
const TEXT: &str = ".text";

/// What somebody typed into a form that came too late to be taken. Secrets are not repeated.
pub(crate) fn typed(fields: &[(String, String)]) -> Vec<String> {
    let shown = fields.iter().filter(|(name, text)| {
        (name.ends_with(TEXT) || name == WORDS || name == NOTE) && !text.trim().is_empty()
    });
    shown.map(|(_, text)| unix_lines(text)).collect()
}

/// Everything there is to fill in.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    /// The fields in the author's order.
    pub(crate) fields: Vec<Field>,
    /// Text for the whole question instead of the fields, where an engine takes any text.
    pub(crate) words: Option<String>,
    /// What is wrong with all of it.
    pub(crate) error: Option<String>,
    /// Whether a secret was taken out of it, which has to be typed again.
    pub(crate) forgot: bool,
    /// Whether the answer is a mapping of fields.
    mapping: bool,
}

/// What a field looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One of the options.
    One,
    /// Some of the options.
    Many,
    /// Text.
    Text,
    /// Text that nobody else may see.
    Secret,
    /// JSON.
    Json,
}

/// One field.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// Its name in the form.
    pub(crate) name: String,
    /// The id in the answer's mapping.
    id: String,
    pub(crate) header: String,
    /// The question in full, as safe HTML.
    pub(crate) question: Option<String>,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    pub(crate) secret: bool,
    pub(crate) options: Vec<Choice>,
    /// Whether text beside the options is an answer too.
    pub(crate) allow_other: bool,
    /// Whether the option for that text is chosen.
    pub(crate) other_chosen: bool,
    /// Whether the option for no answer is chosen, which an optional choice of one has: once picked it could not be cleared.
    pub(crate) none_chosen: bool,
    /// What the asker would take, where no option is marked as that.
    pub(crate) default: Option<String>,
    /// A JSON Schema to go by.
    pub(crate) schema: Option<String>,
    text: String,
    pub(crate) error: Option<String>,
}

/// One option.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) label: String,
    pub(crate) description: Option<String>,
    /// Longer material as safe HTML.
    pub(crate) preview: Option<String>,
    pub(crate) recommended: bool,
    pub(crate) chosen: bool,
    value: String,
}

impl Choice {
    /// The label as a page shows it: one that looks like no other.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        label(&self.label)
    }

    fn new(label: &str, default: Option<&Value>) -> Self {
        let recommended = match default {
            Some(Value::String(text)) => text == label,
            Some(Value::Array(items)) => items.iter().any(|item| item == label),
            _ => false,
        };
        Choice {
            label: label.to_owned(),
            description: None,
            preview: None,
            recommended,
            chosen: false,
            value: label.to_owned(),
        }
    }
}

impl Form {
    /// The empty form of a question.
    pub(crate) fn of(asked: &Asked) -> Self {
        let open = asked.interaction.is_some();
        if let Some(spec) = &asked.spec {
            let fields = spec.questions().iter().enumerate();
            return Form {
                fields: fields
                    .map(|(index, field)| Field::of_spec(index, field, asked.question_type))
                    .collect(),
                words: open.then(String::new),
                error: None,
                forgot: false,
                mapping: true,
            };
        }
        let mut field = Field::new(0, "", "Your answer", Shape::Text);
        let mut words = None;
        match &asked.expected_answer {
            Some(expected) => {
                field.shape = match expected.kind {
                    AnswerKind::SingleChoice => Shape::One,
                    AnswerKind::MultiChoice => Shape::Many,
                    AnswerKind::FreeText | AnswerKind::Form => Shape::Text,
                    AnswerKind::Json => Shape::Json,
                };
                let choices = expected.choices.iter().flatten();
                field.options = choices.map(|label| Choice::new(label, expected.default.as_ref())).collect();
                field.default = field.unmarked(expected.default.as_ref(), asked.question_type);
                field.allow_other = expected.allow_other == Some(true) || (open && field.shape == Shape::One);
                // An engine's own interaction takes any text.
                let schema = expected.schema.as_ref().filter(|_| !open || field.shape != Shape::Text);
                field.schema = schema.map(|schema| format!("{schema:#}"));
                words = (open && !matches!(field.shape, Shape::One | Shape::Text)).then(String::new);
            }
            None => {
                let offered = asked.offered().into_iter();
                let choice =
                    |option: Offered| Choice { value: option.value, ..Choice::new(&option.label, None) };
                field.options = offered.map(choice).collect();
                if !field.options.is_empty() {
                    field.shape = Shape::One;
                    field.allow_other = true;
                }
            }
        }
        Form { fields: vec![field], words, error: None, forgot: false, mapping: false }
    }

    /// Puts in what somebody typed.
    pub(crate) fn fill(&mut self, typed: &[(String, String)]) {
        let all = |name: &str| {
            typed.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
        };
        for field in &mut self.fields {
            let chosen: Vec<&str> = all(&field.name);
            for (index, option) in field.options.iter_mut().enumerate() {
                option.chosen = chosen.iter().any(|value| value.parse() == Ok(index));
            }
            field.other_chosen = field.allow_other && chosen.contains(&"other");
            field.none_chosen = chosen.contains(&"none");
            let text: Vec<&str> = all(&field.text_name());
            field.text = text.first().map(|text| unix_lines(text)).unwrap_or_default();
        }
        if let Some(words) = &mut self.words {
            let typed: Vec<&str> = all(WORDS);
            *words = typed.first().map(|text| unix_lines(text)).unwrap_or_default();
        }
    }

    /// The answer as far as it was given; `None` when it cannot be told what is meant, and the fields say why.
    pub(crate) fn answer(&mut self) -> Option<Value> {
        if let Some(words) = self.words.as_ref().filter(|words| !is_blank(words)) {
            if self.fields.iter().any(Field::is_filled) {
                self.error = Some(
                    "You filled in fields and also answered in your own words. Clear one of the two, so that it is \
                     plain which one counts."
                        .to_owned(),
                );
                return None;
            }
            return Some(json!(words));
        }
        let given: Vec<Option<Value>> = self.fields.iter_mut().map(Field::given).collect();
        if self.fields.iter().any(|field| field.error.is_some()) {
            return None;
        }
        if !self.mapping {
            let given = given.into_iter().next().flatten();
            if given.is_none() {
                self.fields
                    .iter_mut()
                    .for_each(|field| field.refuse("that is not an answer to this question"));
            }
            return given;
        }
        let named = self.fields.iter().zip(given);
        let mapping: Map<String, Value> =
            named.filter_map(|(field, value)| Some((field.id.clone(), value?))).collect();
        Some(Value::Object(mapping))
    }

    /// Puts the reasons why it was no answer beside the fields they are about.
    pub(crate) fn refuse(&mut self, reasons: &[String]) {
        let mut rest = Vec::new();
        for reason in reasons {
            let place = reason.strip_prefix('/').and_then(|reason| reason.split_once(": "));
            let named = place.and_then(|(path, message)| {
                let id = path.split('/').next().unwrap_or_default();
                Some((self.fields.iter_mut().find(|field| field.id == id)?, message))
            });
            match named {
                Some((field, message)) if self.mapping => field.refuse(message),
                _ => rest.push(reason.clone()),
            }
        }
        let [only] = &mut self.fields[..] else {
            self.error = (!rest.is_empty()).then(|| rest.join("; "));
            return;
        };
        rest.iter().for_each(|reason| only.refuse(reason));
    }

    /// Takes every secret out before the form is shown again, and says so beside its field: one that went missing
    /// without a word would be sent as no answer.
    pub(crate) fn forget(&mut self) {
        for field in self.fields.iter_mut().filter(|field| field.secret && field.is_filled()) {
            field.options.iter_mut().for_each(|option| option.chosen = false);
            field.other_chosen = false;
            field.text.clear();
            let again = "Type this again: secrets are not sent back.";
            field.error = Some(match &field.error {
                Some(error) => format!("{}. {again}", error.trim_end_matches('.')),
                None => again.to_owned(),
            });
            self.forgot = true;
        }
    }

    /// What was typed, for somebody who was too late: header and text. Secrets are not repeated.
    pub(crate) fn kept(&self) -> Vec<(String, String)> {
        let mut kept: Vec<(String, String)> = Vec::new();
        for field in self.fields.iter().filter(|field| field.is_filled() && !field.secret) {
            let chosen = field.options.iter().filter(|option| option.chosen);
            let mut lines: Vec<Cow<'_, str>> = chosen.map(|option| label(&option.label)).collect();
            lines.extend(Some(field.text()).filter(|text| !is_blank(text)).map(Cow::from));
            let header = if self.mapping { field.header.clone() } else { String::new() };
            kept.push((header, lines.join("\n")));
        }
        let words = self.words.iter().filter(|words| !is_blank(words));
        kept.extend(words.map(|words| ("In your own words".to_owned(), words.clone())));
        kept
    }

    /// Whether something has to be typed again.
    pub(crate) fn has_error(&self) -> bool {
        self.error.is_some() || self.fields.iter().any(|field| field.error.is_some())
    }
}

impl Field {
    fn new(index: usize, id: &str, header: &str, shape: Shape) -> Self {
        Field {
            name: format!("f{index}"),
            id: id.to_owned(),
            header: header.to_owned(),
            question: None,
            shape,
            required: true,
            secret: false,
            options: Vec::new(),
            allow_other: false,
            other_chosen: false,
            none_chosen: false,
            default: None,
            schema: None,
            text: String::new(),
            error: None,
        }
    }

    fn of_spec(index: usize, asks: &Asks, kind: QuestionType) -> Self {
        let shape = match (asks.kind(), asks.secret()) {
            (Kind::SingleChoice, _) => Shape::One,
            (Kind::MultiChoice, _) => Shape::Many,
            (Kind::FreeText, false) => Shape::Text,
            (Kind::FreeText, true) => Shape::Secret,
        };
        let default = asks.default().map(|default| default.to_json());
        // People allow what they see: nothing beside the question hides either.
        let shown = |text: &str| if kind.grants() { visible(text) } else { text.to_owned() };
        let options = asks.options().iter().map(|option| Choice {
            description: Some(shown(option.description())),
            preview: option.preview().map(|preview| markdown::asked(kind, preview)),
            ..Choice::new(option.label(), default.as_ref())
        });
        let field = Field {
            question: Some(markdown::asked(kind, asks.question())),
            required: asks.required(),
            secret: asks.secret(),
            options: options.collect(),
            allow_other: asks.allow_other(),
            ..Field::new(index, asks.id(), &shown(asks.header()), shape)
        };
        Field { default: field.unmarked(default.as_ref(), kind), ..field }
    }

    /// A default that no option is marked as, sign by sign where it allows something.
    fn unmarked(&self, default: Option<&Value>, kind: QuestionType) -> Option<String> {
        let default = default.filter(|_| !self.options.iter().any(|option| option.recommended))?;
        let text = default.as_str().map_or_else(|| format!("{default:#}"), str::to_owned);
        Some(if kind.grants() { visible(&text) } else { text })
    }

    /// The ids of what belongs to the field for whoever hears the page: what it asks, and what is wrong.
    pub(crate) fn described(&self) -> Option<String> {
        let ids = [("ask", self.question.is_some()), ("error", self.error.is_some())].into_iter();
        let ids: Vec<String> =
            ids.filter(|(_, is_there)| *is_there).map(|(end, _)| format!("{}-{end}", self.name)).collect();
        (!ids.is_empty()).then(|| ids.join(" "))
    }

    /// The name of what is typed. One of its own for secrets: also where nothing is known but the form, they are told from
    /// what may be shown back.
    pub(crate) fn text_name(&self) -> String {
        format!("{}{}", self.name, if self.secret { ".secret" } else { TEXT })
    }

    /// The text to show again. A secret is never sent back.
    pub(crate) fn text(&self) -> &str {
        if self.secret { "" } else { &self.text }
    }

    fn is_filled(&self) -> bool {
        self.options.iter().any(|option| option.chosen) || !is_blank(&self.text)
    }

    /// What this field answers; nothing when it was left alone.
    fn given(&mut self) -> Option<Value> {
        let text = Some(self.text.clone()).filter(|text| !is_blank(text));
        let chosen: Vec<&Choice> = self.options.iter().filter(|option| option.chosen).collect();
        match self.shape {
            Shape::Text | Shape::Secret => text.map(Value::String),
            Shape::One => match (chosen.into_iter().next(), text.filter(|_| self.allow_other)) {
                (Some(option), None) => Some(json!(option.value)),
                (Some(option), Some(_)) => {
                    let chosen = if self.secret {
                        "an option".to_owned()
                    } else {
                        format!("“{}”", option.shown())
                    };
                    self.error = Some(format!(
                        "You chose {chosen} and also wrote something. Clear the text, or choose “Something else”."
                    ));
                    None
                }
                (None, Some(_)) if self.none_chosen => {
                    self.error = Some(
                        "You chose no answer and also wrote something. Clear the text, or choose “Something else”."
                            .to_owned(),
                    );
                    None
                }
                // Where no answer is needed this would be taken for none, and that is for good.
                (None, None) if self.other_chosen => {
                    self.error = Some(
                        "You chose “Something else” and wrote nothing. Write it, or choose another option."
                            .to_owned(),
                    );
                    None
                }
                (None, text) => text.map(Value::String),
            },
            Shape::Many => {
                let values = chosen.iter().map(|option| option.value.clone());
                let all: Vec<String> = values.chain(text.filter(|_| self.allow_other)).collect();
                (!all.is_empty()).then(|| json!(all))
            }
            Shape::Json => match aop_ask::json::read_plainly(text?.as_bytes()) {
                Ok(value) => Some(value),
                Err(error) => {
                    self.error = Some(format!("This is not JSON: {error}"));
                    None
                }
            },
        }
    }

    fn refuse(&mut self, reason: &str) {
        let words = if self.is_filled() {
            reason.to_owned()
        } else {
            match self.shape {
                Shape::One if self.allow_other => "Choose one, or write your own answer.",
                Shape::One => "Choose one.",
                Shape::Many => "Choose at least one.",
                Shape::Text | Shape::Secret | Shape::Json => "Write an answer.",
            }
            .to_owned()
        };
        match &mut self.error {
            Some(error) if *error != words => {
                error.push_str("; ");
                error.push_str(&words);
            }
            Some(_) => {}
            None => self.error = Some(words),
        }
    }
}

/// Browsers send the line breaks of a text as CR LF.
fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests;

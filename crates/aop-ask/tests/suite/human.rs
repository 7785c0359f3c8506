//! A simulated human: knows what they mean, sees only native requests, and replies in the tool's own format.

use aop_ask::{AnswerValue, Kind, Question, QuestionSpec, Request, Target};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// What the human means, and what they already said.
pub(crate) struct Human<'a> {
    pub(crate) spec: &'a QuestionSpec,
    pub(crate) means: &'a HashMap<String, AnswerValue>,
    /// Required questions the human overlooks the first time.
    pub(crate) overlooks: HashSet<String>,
    said: HashMap<String, HashSet<String>>,
}

/// One reaction to one native question.
enum Does {
    Nothing,
    Picks(String),
    Types(String),
}

/// A native question as a person sees it.
struct Seen {
    options: Vec<(String, String)>,
}

impl<'a> Human<'a> {
    pub(crate) fn new(spec: &'a QuestionSpec, means: &'a HashMap<String, AnswerValue>) -> Self {
        Human { spec, means, overlooks: HashSet::new(), said: HashMap::new() }
    }

    pub(crate) fn replies(&mut self, target: Target, request: &Request) -> Value {
        match target {
            Target::ClaudeCode => self.claude_code(&request.input),
            Target::Codex => self.codex(&request.input),
            Target::StrictText => self.strict_text(&request.input),
            Target::Elicitation => self.elicitation(&request.input),
            Target::Terminal => self.terminal(&request.input),
        }
    }

    fn claude_code(&mut self, input: &Value) -> Value {
        let mut answers = Map::new();
        let mut asked = HashSet::new();
        for native in input["questions"].as_array().unwrap() {
            let text = native["question"].as_str().unwrap();
            assert!(asked.insert(text), "two native questions with one text");
            let question = self.headed(native["header"].as_str().unwrap());
            let options = pairs(&native["options"], "label", "description");
            if native["multiSelect"] == json!(true) {
                if let Some(all) = self.all_at_once(question) {
                    answers.insert(text.to_owned(), all.join(", ").into());
                }
                continue;
            }
            match self.reacts(question, &Seen { options }) {
                Does::Nothing => {}
                Does::Picks(word) | Does::Types(word) => {
                    answers.insert(text.to_owned(), word.into());
                }
            }
        }
        json!({"answers": answers})
    }

    /// People tell questions with equal texts apart by the header, of which the first word survives cutting.
    fn headed(&self, header: &str) -> &'a Question {
        let word = |text: &str| text.split(' ').next().map(str::to_owned);
        self.spec.questions().iter().find(|question| word(question.header()) == word(header)).unwrap()
    }

    fn codex(&mut self, input: &Value) -> Value {
        let mut answers = Map::new();
        for native in input["questions"].as_array().unwrap() {
            let question = self.spec.question(native["id"].as_str().unwrap()).unwrap();
            let options = pairs(&native["options"], "label", "description");
            let said: Vec<String> = match self.reacts(question, &Seen { options }) {
                Does::Nothing => continue,
                Does::Picks(word) => vec![word],
                // Both ways in which the tool's clients pass typed text.
                Does::Types(text) if text.len().is_multiple_of(2) => {
                    vec!["None of the above".to_owned(), format!("user_note: {text}")]
                }
                Does::Types(text) => vec![text],
            };
            answers.insert(question.id().to_owned(), json!({"answers": said}));
        }
        json!({"answers": answers})
    }

    fn strict_text(&mut self, input: &Value) -> Value {
        let prompt = input["prompt"].as_str().unwrap();
        let mut answers = Map::new();
        for question in self.spec.questions() {
            let asked = prompt.contains(&format!("\n## {} (", question.id()));
            if !asked || self.overlooks.remove(question.id()) {
                continue;
            }
            if let Some(value) = self.means.get(question.id()) {
                answers.insert(question.id().to_owned(), value.to_json());
            }
        }
        let body = json!({"answers": answers}).to_string();
        if body.len().is_multiple_of(2) { body.into() } else { format!("```json\n{body}\n```").into() }
    }

    fn elicitation(&mut self, input: &Value) -> Value {
        let mut content = Map::new();
        for (id, field) in input["requestedSchema"]["properties"].as_object().unwrap() {
            let Some(question) = self.spec.question(id) else { continue };
            let other = format!("{id}__other");
            if field["type"] == json!("array") {
                let (labels, others) = self.split_all(question);
                if !labels.is_empty() {
                    content.insert(id.clone(), labels.into());
                }
                if let Some(text) = others.first() {
                    content.insert(other, text.clone().into());
                }
                continue;
            }
            let options = match (field.get("oneOf"), field.get("enum")) {
                (Some(options), _) => pairs(options, "const", "title"),
                (None, Some(names)) => names
                    .as_array()
                    .unwrap()
                    .iter()
                    .zip(field["enumNames"].as_array().unwrap())
                    .map(|(name, title)| (text(name), text(title)))
                    .collect(),
                (None, None) => Vec::new(),
            };
            match self.reacts(question, &Seen { options }) {
                Does::Nothing => {}
                Does::Picks(label) => {
                    content.insert(id.clone(), label.into());
                }
                Does::Types(text) if question.kind() == Kind::FreeText => {
                    content.insert(id.clone(), text.into());
                }
                Does::Types(text) => {
                    content.insert(other, text.into());
                }
            }
        }
        json!({"action": "accept", "content": content})
    }

    fn terminal(&mut self, input: &Value) -> Value {
        let question = self.spec.question(input["id"].as_str().unwrap()).unwrap();
        if input["kind"] == json!("multi_select") {
            let (labels, others) = self.split_all(question);
            return match others.first() {
                Some(text) => json!({"selected": labels, "text": text}),
                None => json!({"selected": labels}),
            };
        }
        match self.reacts(question, &Seen { options: pairs(&input["options"], "label", "description") }) {
            Does::Nothing => json!({}),
            Does::Picks(label) => json!({"selected": [label]}),
            Does::Types(text) => json!({"text": text}),
        }
    }

    fn all_at_once(&mut self, question: &Question) -> Option<Vec<String>> {
        let (labels, others) = self.split_all(question);
        assert!(others.is_empty(), "other text cannot be told from labels in a joined reply");
        (!labels.is_empty()).then_some(labels)
    }

    /// Labels, and the first other text, that are still to be said; both count as said afterwards.
    fn split_all(&mut self, question: &Question) -> (Vec<String>, Vec<String>) {
        let overlooked = self.overlooks.remove(question.id());
        let Some(AnswerValue::Many(items)) = self.means.get(question.id()).filter(|_| !overlooked) else {
            return (Vec::new(), Vec::new());
        };
        let said = self.said.entry(question.id().to_owned()).or_default();
        let (labels, others): (Vec<String>, Vec<String>) = items
            .iter()
            .filter(|item| !said.contains(*item))
            .cloned()
            .partition(|item| question.position(item).is_some());
        said.extend(labels.iter().cloned());
        said.extend(others.first().cloned());
        (labels, others)
    }

    fn reacts(&mut self, question: &Question, seen: &Seen) -> Does {
        if self.overlooks.remove(question.id()) {
            return Does::Nothing;
        }
        let Some(means) = self.means.get(question.id()) else { return Does::Nothing };
        let said = self.said.entry(question.id().to_owned()).or_default();
        let wish = match means {
            AnswerValue::One(text) => Some(text),
            AnswerValue::Many(items) => items.iter().find(|item| !said.contains(*item)),
        };
        let described = |end: &str| seen.options.iter().find(|(_, description)| description.ends_with(end));
        let Some(wish) = wish else {
            return Does::Picks(described("That is all").unwrap().0.clone());
        };
        let is_label = question.position(wish).is_some();
        if !is_label {
            said.insert(wish.clone());
            return Does::Types(wish.clone());
        }
        if let Some((add, _)) = described("Choose one more") {
            return Does::Picks(add.clone());
        }
        if seen.options.iter().any(|(label, _)| label == wish) {
            said.insert(wish.clone());
            return Does::Picks(wish.clone());
        }
        Does::Picks(route(question, seen, wish, said))
    }
}

/// The routing option that leads to a label: its description names the label, or a range that holds it.
fn route(question: &Question, seen: &Seen, wish: &str, said: &HashSet<String>) -> String {
    if let Some((label, _)) = seen.options.iter().find(|(_, d)| d.contains(&format!("“{wish}”"))) {
        return label.clone();
    }
    let remaining: Vec<_> =
        question.options().iter().filter(|option| !said.contains(option.label())).collect();
    let mut clusters = Vec::new();
    for option in &remaining {
        if !clusters.contains(&option.cluster()) {
            clusters.push(option.cluster());
        }
    }
    let order: Vec<&str> = clusters
        .iter()
        .flat_map(|cluster| remaining.iter().filter(move |option| option.cluster() == *cluster))
        .map(|option| option.label())
        .collect();
    let place = |label: &str| order.iter().position(|known| *known == label).unwrap();
    let in_range = |description: &str| {
        let Some((_, range)) = description.split_once(" options, from “") else { return false };
        let (first, last) = range.strip_suffix('”').unwrap().split_once("” to “").unwrap();
        (place(first)..=place(last)).contains(&place(wish))
    };
    let found = seen.options.iter().find(|(_, description)| in_range(description));
    found.unwrap_or_else(|| panic!("no way to {wish:?} in {:?}", seen.options)).0.clone()
}

fn pairs(options: &Value, label: &str, description: &str) -> Vec<(String, String)> {
    options.as_array().unwrap().iter().map(|o| (text(&o[label]), text(&o[description]))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

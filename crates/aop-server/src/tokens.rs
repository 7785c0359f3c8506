//! Tokens: who may come in through HTTP. A token is `aop_`, its id and 256 random bits; the store keeps the digest
//! of the whole and never the token, so that nobody who reads the store can use one. An operator's token may answer;
//! an agent's may ask for its feature and read it, and nothing more.

use crate::secret::{Sealed, random};
use aop_ask::is_blank;
use aop_kernel::ids::{FeatureId, quoted};
use aop_kernel::lifecycle::feature_not_found;
use aop_kernel::role::{Caller, Role};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::{RESERVED_NAMES, Tool, is_reserved_name, parse};
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{Expect, Service, Shelf, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const PREFIX: &str = "aop_";

/// Names are shown in records, so they follow the rule of `answered_by`.
const MAX_NAME_BYTES: usize = 200;

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// A person: may answer.
    Operator,
    /// A program: may ask.
    Agent,
}

impl TokenKind {
    /// Reads a kind; the refusal lists them.
    pub fn parse(name: &str) -> Result<Self, Refusal> {
        match name {
            "operator" => Ok(TokenKind::Operator),
            "agent" => Ok(TokenKind::Agent),
            other => Err(Refusal::invalid_argument(format!("kind {} is not known", quoted(other)))
                .hint("kind is operator (may answer) or agent (may ask)")
                .fact("argument", "kind")),
        }
    }
}

/// What a new token should be.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// What it is for.
    pub kind: TokenKind,
    /// Whose it is. An operator's name is what answers are signed with.
    pub name: Option<String>,
    /// An agent's worker role.
    pub role: Role,
    /// The one feature an agent may ask for and read. Without it, it may only ask lone questions.
    pub feature: Option<FeatureId>,
    /// How long it is good for; for ever when absent.
    pub lives_ms: Option<u64>,
}

/// A token as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// Its public name.
    pub token_id: String,
    /// What it is for.
    pub kind: TokenKind,
    /// Whose it is.
    pub name: Option<String>,
    /// An agent's role.
    pub role: Option<Role>,
    /// An agent's feature.
    pub feature_id: Option<FeatureId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
    /// The digest of the token.
    digest: String,
}

impl TokenRecord {
    /// The record as it may be shown: without the digest.
    pub fn shown(&self) -> Value {
        let mut shown = json!(self);
        if let Some(map) = shown.as_object_mut() {
            map.shift_remove("digest");
        }
        shown
    }

    /// Whether it is still good at this time.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// Who a valid token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bearer {
    /// A person. The name, if it has one, is who answers.
    Operator {
        /// Whose token it is.
        name: Option<String>,
    },
    /// A program.
    Agent {
        /// The token's id: without a feature, what it asked is all it may see.
        token_id: String,
        /// Its worker role.
        role: Role,
        /// Its feature.
        feature: Option<FeatureId>,
    },
}

impl Bearer {
    /// In whose name the tools of the contract are called.
    pub fn caller(&self) -> Result<Caller, Refusal> {
        match self {
            Bearer::Operator { .. } => Ok(Caller::new(Role::Human)),
            Bearer::Agent { role, feature: Some(feature), .. } => {
                Ok(Caller { role: *role, feature: Some(feature.clone()) })
            }
            Bearer::Agent { role, feature: None, .. } => Err(lone_agent(*role)),
        }
    }
}

/// What an agent without a feature is told when it does anything but ask.
pub(crate) fn lone_agent(role: Role) -> Refusal {
    let message = "this agent's token belongs to no feature: it may only ask, with ask_user over MCP";
    Refusal::new(ErrorCode::ForbiddenForRole, message)
        .hint("make one for the feature: `aop token create --kind agent --feature-id ID`")
        .fact("role", role)
}

/// Signs an answer with the name of an operator's token. What the request itself says there does not count, and is checked
/// all the same: a request that is refused from one operator is refused from every other.
pub(crate) fn sign(
    service: &Service,
    caller: &Caller,
    input: &mut Value,
    name: &str,
    surface: &'static str,
) -> Result<(), Refusal> {
    if input.get("answered_by").is_some_and(|given| !given.is_null()) {
        parse(Tool::QuestionAnswer, caller, input, surface, &service.rules)?;
    }
    input["answered_by"] = json!(name);
    Ok(())
}

/// Makes a token. The text is returned once and kept nowhere.
pub async fn create(store: &dyn Store, new: NewToken) -> Result<(TokenRecord, String), Refusal> {
    if let Some(name) = &new.name {
        check_name(name)?;
    }
    if let Some(feature) = &new.feature
        && store.feature(feature.clone()).await?.is_none()
    {
        return Err(feature_not_found(feature));
    }
    let agent = new.kind == TokenKind::Agent;
    if !agent && new.feature.is_some() {
        return Err(Refusal::invalid_argument("an operator's token is for every feature")
            .hint("leave --feature-id out, or make a token of kind agent")
            .fact("argument", "feature_id"));
    }
    if agent && !new.role.is_worker() {
        return Err(Refusal::new(ErrorCode::ForbiddenForRole, format!("an agent may not be {}", new.role))
            .hint("role is one of planner, builder, qa")
            .fact("role", new.role));
    }
    let now = store.now().await?;
    let (token_id, text) = fresh()?;
    let record = TokenRecord {
        token_id: token_id.clone(),
        kind: new.kind,
        name: new.name,
        role: agent.then_some(new.role),
        feature_id: new.feature,
        created_at: now,
        expires_at: new.lives_ms.map(|ms| now.plus_millis(ms)),
        revoked_at: None,
        digest: Sealed::of(&text).to_hex(),
    };
    if !store.place(Shelf::Tokens, token_id, Some(json!(record)), Expect::Absent).await? {
        return Err(Refusal::new(ErrorCode::Internal, "a fresh token id was taken already"));
    }
    Ok((record, text))
}

/// All tokens, oldest first.
pub async fn list(store: &dyn Store) -> Result<Vec<TokenRecord>, Refusal> {
    let documents = store.documents(Shelf::Tokens, String::new()).await?;
    documents.into_iter().map(|(id, document)| read(&id, document)).collect()
}

/// Takes a token back. Twice is the same as once.
pub async fn revoke(store: &dyn Store, id: &str) -> Result<TokenRecord, Refusal> {
    loop {
        let Some(document) = store.document(Shelf::Tokens, id.to_owned()).await? else {
            return Err(Refusal::invalid_argument(format!("there is no token {}", quoted(id)))
                .hint("`aop token list` shows their ids")
                .fact("argument", "token_id"));
        };
        let mut record = read(id, document.clone())?;
        if record.revoked_at.is_some() {
            return Ok(record);
        }
        record.revoked_at = Some(store.now().await?);
        let unchanged = Expect::Value(document);
        if store.place(Shelf::Tokens, id.to_owned(), Some(json!(record)), unchanged).await? {
            return Ok(record);
        }
    }
}

/// Who a token stands for; `None` when it is unknown, forged, expired or revoked.
pub async fn verify(store: &dyn Store, text: &str) -> Result<Option<(String, Bearer)>, Refusal> {
    let Some(id) = token_id(text) else { return Ok(None) };
    let Some(record) = find(store, &id).await? else { return Ok(None) };
    // Compared before anything else is looked at: what is known about a token is told to its holder alone.
    if !Sealed::of(text).is_hex(&record.digest) || !record.is_good(store.now().await?) {
        return Ok(None);
    }
    Ok(Some((record.token_id.clone(), bearer(record))))
}

/// Whether a token that was good once still is.
pub(crate) async fn still_good(store: &dyn Store, id: &str) -> Result<bool, Refusal> {
    let Some(record) = find(store, id).await? else { return Ok(false) };
    Ok(record.is_good(store.now().await?))
}

async fn find(store: &dyn Store, id: &str) -> Result<Option<TokenRecord>, Refusal> {
    let document = store.document(Shelf::Tokens, id.to_owned()).await?;
    document.map(|document| read(id, document)).transpose()
}

fn bearer(record: TokenRecord) -> Bearer {
    match record.kind {
        TokenKind::Operator => Bearer::Operator { name: record.name },
        TokenKind::Agent => Bearer::Agent {
            token_id: record.token_id,
            role: record.role.filter(|role| role.is_worker()).unwrap_or(Role::Builder),
            feature: record.feature_id,
        },
    }
}

fn read(id: &str, document: Value) -> Result<TokenRecord, Refusal> {
    serde_json::from_value(document).map_err(|error| {
        Refusal::new(ErrorCode::StoreUnavailable, format!("token {id} cannot be read: {error}"))
            .hint("revoke it with `aop token revoke` and make a new one; `aop doctor` checks the store")
    })
}

/// A fresh token: its id and its text.
pub(crate) fn fresh() -> Result<(String, String), Refusal> {
    let ulid = ulid::Ulid::generate().to_string();
    let text = format!("{PREFIX}{ulid}_{}", random()?);
    Ok((format!("t_{ulid}"), text))
}

/// The id that a token's text names.
fn token_id(text: &str) -> Option<String> {
    let (ulid, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let plain = ulid.len() == 26 && ulid.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let whole = secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    (plain && whole).then(|| format!("t_{ulid}"))
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let wrong = |why: &str| {
        Refusal::invalid_argument(format!("name {} {why}", quoted(name)))
            .hint("a name is shown with every answer: give a person's or a program's name")
            .fact("argument", "name")
    };
    if is_blank(name) {
        return Err(wrong("is blank"));
    }
    if is_reserved_name(name) {
        return Err(wrong(&format!("is reserved: {RESERVED_NAMES}")));
    }
    if name.chars().any(char::is_control) || name.len() > MAX_NAME_BYTES {
        return Err(wrong("has control characters or more than 200 bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shape_of_a_token_names_an_id() {
        let (id, text) = fresh().unwrap();
        assert_eq!(token_id(&text), Some(id));
        for forged in ["", "aop_", "aop__", &text[1..], &text[..text.len() - 1], "aop_../../etc_00"] {
            assert_eq!(token_id(forged), None, "{forged}");
        }
    }

    #[test]
    fn a_name_that_could_pass_for_policy_is_refused() {
        for bad in ["", "  ", "policy:default", " Policy:x", "a\nb", &"x".repeat(201)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert!(check_name("Ana").is_ok());
    }
}

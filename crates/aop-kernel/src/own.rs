//! The operations that aop's own code names, and the one list of how their ids begin. Such an id is derived from what is
//! done, so that doing it again is a replay; who could use it first could keep that from ever being done. So no agent
//! brings one: [`OperationId::given`] refuses them, and nothing else than [`OwnOperation::id`] makes them. A person may
//! name an operation as they like.

use crate::envelope::Refusal;
use crate::ids::{OperationId, quoted};
use crate::role::Caller;
use std::fmt;

/// What aop's own code does under a name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnOperation {
    /// `aop run` makes a feature of a specification.
    Enrol,
    /// A gate asks.
    Gate,
    /// A turn begins.
    Begin,
    /// A turn ends.
    End,
    /// A check begins or ends.
    Check,
    /// A feature goes to another status.
    Move,
    /// A feature goes on at another runner.
    Moved,
    /// The work on a feature is missing.
    Missing,
    /// A turn asks.
    Ask,
    /// Claude Code asks through its hook.
    Claude,
    /// An agent asks with `ask_user`.
    AskUser,
    /// A form in a client answers.
    Elicit,
}

/// The id of an operation of aop's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnId(OperationId);

impl OwnOperation {
    /// All of them.
    pub const ALL: &[OwnOperation] = &[
        OwnOperation::Enrol,
        OwnOperation::Gate,
        OwnOperation::Begin,
        OwnOperation::End,
        OwnOperation::Check,
        OwnOperation::Move,
        OwnOperation::Moved,
        OwnOperation::Missing,
        OwnOperation::Ask,
        OwnOperation::Claude,
        OwnOperation::AskUser,
        OwnOperation::Elicit,
    ];

    /// How its ids begin. They are in stores: a prefix never changes.
    pub fn prefix(self) -> &'static str {
        match self {
            OwnOperation::Enrol => "enrol:",
            OwnOperation::Gate => "gate:",
            OwnOperation::Begin => "begin:",
            OwnOperation::End => "end:",
            OwnOperation::Check => "check:",
            OwnOperation::Move => "move:",
            OwnOperation::Moved => "moved:",
            OwnOperation::Missing => "missing:",
            OwnOperation::Ask => "ask:",
            OwnOperation::Claude => "claude:",
            OwnOperation::AskUser => "ask_",
            OwnOperation::Elicit => "elicit_",
        }
    }

    /// The id of one such operation.
    pub fn id(self, of: impl fmt::Display) -> Result<OwnId, Refusal> {
        OperationId::parse(&format!("{}{of}", self.prefix())).map(OwnId)
    }

    /// Whether the text is an id as this makes them.
    fn makes(self, text: &str) -> bool {
        let Some(of) = text.strip_prefix(self.prefix()) else { return false };
        match self {
            // The beginning alone is a word that callers use; a digest behind it they do not.
            OwnOperation::AskUser => of.len() == 64 && of.bytes().all(|byte| byte.is_ascii_hexdigit()),
            _ => true,
        }
    }
}

impl OwnId {
    /// As an operation id like every other.
    pub fn into_operation(self) -> OperationId {
        self.0
    }

    /// The same.
    pub fn as_operation(&self) -> &OperationId {
        &self.0
    }
}

impl OperationId {
    /// An operation id that a caller brings; of an agent none that aop itself may need.
    pub fn given(text: &str, caller: &Caller) -> Result<Self, Refusal> {
        let id = OperationId::parse(text)?;
        let own = OwnOperation::ALL.iter().find(|own| own.makes(text)).filter(|_| caller.role.is_worker());
        let Some(own) = own else { return Ok(id) };
        let prefix = own.prefix();
        Err(Refusal::invalid_argument(format!("operation_id {} is reserved: it begins with '{prefix}'", quoted(text)))
            .hint(format!("aop names its own operations '{prefix}…'; choose another id, for instance one with your own name in front"))
            .fact("argument", "operation_id")
            .fact("prefix", prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;

    #[test]
    fn an_agent_brings_no_id_that_aop_makes_itself() {
        let (agent, person) = (Caller::new(Role::Builder), Caller::new(Role::Human));
        let digest = "0123456789abcdef".repeat(4);
        for own in OwnOperation::ALL {
            let made = own.id(&digest).unwrap().into_operation();
            let refusal = OperationId::given(made.as_str(), &agent).unwrap_err();
            assert_eq!(OperationId::given(made.as_str(), &person).unwrap(), made);
            assert_eq!(refusal.facts["prefix"], own.prefix());
            assert_eq!(refusal.facts["argument"], "operation_id");
            // What stands in a store is read as ever.
            assert_eq!(OperationId::parse(made.as_str()).unwrap(), made);
        }
        for free in ["op_1", "ask_1", "ask-1", "ask_user", "enrol", "my:enrol:f9", "ending", "Gate:f1"] {
            assert_eq!(OperationId::given(free, &agent).unwrap().as_str(), free);
        }
    }
}

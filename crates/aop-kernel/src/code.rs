//! The one list of error codes. Every refusal on every surface carries one of these; each has an exit
//! code, an HTTP status and a page (`aop explain CODE`). New codes are added here and nowhere else.

use serde::{Serialize, Serializer};

/// What the command line exits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// The request was understood and refused, or it failed.
    Refused = 1,
    /// The call or an input document is malformed.
    Usage = 2,
}

/// The page behind a code.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// One sentence: what the code says.
    pub meaning: &'static str,
    /// What to do next.
    pub remedy: &'static str,
}

macro_rules! codes {
    ($($variant:ident $name:literal $exit:ident $http:literal retry:$retry:literal human:$human:literal
       $meaning:literal $remedy:literal;)*) => {
        /// A stable error code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $(#[doc = $meaning] $variant,)* }

        impl ErrorCode {
            /// Every code, in the order of the contract.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str { match self { $(ErrorCode::$variant => $name,)* } }

            /// What the command line exits with.
            pub fn exit_code(self) -> ExitCode { match self { $(ErrorCode::$variant => ExitCode::$exit,)* } }

            /// What the HTTP API answers with.
            pub fn http_status(self) -> u16 { match self { $(ErrorCode::$variant => $http,)* } }

            /// Whether the same call may succeed later without anything else changing.
            pub fn retryable(self) -> bool { match self { $(ErrorCode::$variant => $retry,)* } }

            /// Whether a person has to act before the call can succeed.
            pub fn requires_human(self) -> bool { match self { $(ErrorCode::$variant => $human,)* } }

            /// The page of this code.
            pub fn page(self) -> Page {
                match self { $(ErrorCode::$variant => Page { meaning: $meaning, remedy: $remedy },)* }
            }

            /// Finds a code by its wire name.
            pub fn parse(name: &str) -> Option<ErrorCode> {
                ErrorCode::ALL.iter().copied().find(|code| code.as_str() == name)
            }
        }
    };
}

codes! {
    QuestionNotFound "question_not_found" Refused 404 retry:false human:false
        "The feature has no question with this id."
        "List what there is with `aop questions --status all`, and check the feature id: a question belongs to exactly one feature.";
    QuestionAlreadyAnswered "question_already_answered" Refused 409 retry:false human:false
        "Somebody answered this question first; the details name who, when and with what. Answers are never changed."
        "If the answer must change, tell the agent with `aop send --feature-id ID NOTE`: the note is read at the beginning of the next turn. It is kept in the log, so do not put a secret into it: have the agent ask again.";
    QuestionClosed "question_closed" Refused 409 retry:false human:true
        "The question expired or was withdrawn before this answer arrived, so nothing waits for it any more."
        "Ask it again with `aop reopen --feature-id ID --question-id QID`, then answer the new question.";
    QuestionInvalidAnswer "question_invalid_answer" Refused 422 retry:false human:true
        "The answer does not fit what the question expects; the details list each reason. Nothing was changed, the question is still open."
        "Look at the expected kind and choices with `aop questions --feature-id ID` and answer again.";
    QuestionConflictOpen "question_conflict_open" Refused 409 retry:false human:true
        "The feature already has an open blocking question, or as many open questions as its policy admits."
        "Answer or withdraw the open question first; the details name it.";
    QuestionAnswerNotAllowedInTerminalState "question_answer_not_allowed_in_terminal_state" Refused 409 retry:false human:false
        "The feature is merged or failed. Its questions accept no more answers."
        "Create a new feature to continue the work.";
    QuestionOpenBlocksAction "question_open_blocks_action" Refused 409 retry:false human:true
        "The feature waits for a human (`awaiting_input`): no turn, check, patch, merge or transition takes place until its question is closed."
        "Answer it with `aop answer`, or withdraw it with `aop withdraw`.";
    UnsupportedOperation "unsupported_operation" Refused 409 retry:false human:false
        "This is not possible here at the moment, and the message says why: the project's policy, a folder without git, an engine that cannot do it."
        "Do what the hint says; policy is set in aop.yaml.";
    OperationIdRequired "operation_id_required" Usage 400 retry:false human:false
        "A mutating tool call carries no `operation_id`, so a retry of it could not be told from a new call."
        "Send a fresh `operation_id` (1-128 printable ASCII characters without spaces) and keep it for retries.";
    OperationIdReuseMismatch "operation_id_reuse_mismatch" Refused 409 retry:false human:false
        "This `operation_id` was used before for a different request. An id names one request forever."
        "Use a fresh `operation_id` for the new request.";
    InvalidArgument "invalid_argument" Usage 400 retry:false human:false
        "An argument is missing, unknown, of the wrong type or out of range; the message names it and its value."
        "Correct the argument and call again; nothing was changed.";
    InvalidDocument "invalid_document" Usage 400 retry:false human:false
        "An input document (question spec, answer, packet, prompt spec) breaks its rules; the details list every violation with its path."
        "Correct each violation and try again. `aop spec check FILE` shows them for a spec.";
    InvalidPolicy "invalid_policy" Usage 400 retry:false human:true
        "aop.yaml cannot be used: a key is unknown, a value is out of range, or the YAML is broken. The message gives file and line."
        "Correct that line; every key is optional, so deleting it is safe.";
    InvalidStatusTransition "invalid_status_transition" Refused 409 retry:false human:false
        "A feature cannot go from its current status to the one asked for."
        "Look at the feature with `aop features show ID`; the details list the statuses it can go to.";
    FeatureNotFound "feature_not_found" Refused 404 retry:false human:false
        "The project has no feature with this id."
        "List them with `aop features list --all`.";
    FeatureAlreadyExists "feature_already_exists" Refused 409 retry:false human:false
        "A feature with this id exists. Ids are never reused."
        "Choose another id, or work on the existing feature.";
    NoProject "no_project" Refused 404 retry:false human:true
        "No folder from here upward has an `.aop/` folder, so there is no project to work on."
        "Run `aop init` in the project's root, or name it with `--project DIR` or AOP_PROJECT.";
    ProjectNotEmpty "project_not_empty" Refused 409 retry:false human:true
        "A history can only be imported into a project that has none, and this one has one: the details count what is there. Nothing was changed."
        "Make an empty project (`mkdir copy && cd copy && aop init`) and import there.";
    ForbiddenForRole "forbidden_for_role" Refused 403 retry:false human:true
        "The caller's role may not do this, or not for this feature. Agents may ask; only people answer."
        "Let a human do it from a shell that no agent started.";
    Unauthenticated "unauthenticated" Refused 401 retry:false human:true
        "The request carries no valid credential."
        "Make a token with `aop token create --kind operator --name YOU` and send it as `Authorization: Bearer TOKEN`.";
    RateLimited "rate_limited" Refused 429 retry:true human:false
        "Too many wrong credentials came from this address within a minute."
        "Wait as long as the details say and call again.";
    PayloadTooLarge "payload_too_large" Refused 413 retry:false human:false
        "The request or one of its fields is larger than aop keeps; the details give size and limit."
        "Shorten it: put long material into a file in the project and name the file.";
    VersionConflict "version_conflict" Refused 409 retry:false human:true
        "What the request was based on has changed: a record was written since it was read, or changes stand in the way of a merge."
        "Do what the hint says; read the record again and decide again.";
    StoreUnavailable "store_unavailable" Refused 503 retry:true human:true
        "The store could not be opened, read or written; the message names the file and the cause. Nothing was half-written."
        "Check disk space and permissions of `.aop/`, then run `aop doctor`.";
    RunAlreadyActive "run_already_active" Refused 409 retry:true human:true
        "Another `aop run` is working on this project."
        "Wait for it, stop it, or take over with `aop run --takeover` if it is dead.";
    EngineUnavailable "engine_unavailable" Refused 503 retry:true human:true
        "The agent program is not installed, not executable, or of a version that cannot be driven."
        "Install it, or choose another engine in aop.yaml or, for one run, with `aop run --engine NAME`; then `aop retry --feature-id ID` for what is blocked, and `aop run`.";
    EngineFailed "engine_failed" Refused 502 retry:true human:false
        "The agent program failed, timed out or broke off in the middle of a turn."
        "Look at the transcript named in the details and run `aop retry --feature-id ID`.";
    ChecksFailed "checks_failed" Refused 409 retry:false human:true
        "A check command failed or has not passed yet, so the step that needs it is refused."
        "Look at the captured output and fix what it names; a feature that is `building` is checked again by `aop run`.";
    Internal "internal" Refused 500 retry:false human:true
        "aop broke one of its own rules. This is a bug; the state was left as it was."
        "Run `aop doctor` and report the message together with what you did.";
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_parses_back_from_its_name() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::parse(code.as_str()), Some(*code));
        }
    }

    #[test]
    fn every_code_has_a_page_that_says_what_to_do() {
        for code in ErrorCode::ALL {
            assert!(code.page().meaning.ends_with('.'), "{code}");
            assert!(code.page().remedy.len() > 20, "{code}");
        }
    }
}

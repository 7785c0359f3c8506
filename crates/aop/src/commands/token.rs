//! `aop token create|list|revoke`: who may come in through `aop serve`.

use super::tool::parse_role;
use crate::cli::Global;
use crate::number::lasting;
use crate::output::style::{bold, clean, dim};
use crate::output::table::fitting;
use crate::output::{CommandResult, Reply};
use crate::project::{Project, Session};
use aop_kernel::ids::FeatureId;
use aop_kernel::{Envelope, Refusal};
use aop_server::tokens::{self, NewToken, TokenKind, TokenRecord};
use clap::Subcommand;
use serde_json::{Value, json};

/// Make, list and revoke the tokens that `aop serve` takes
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop token create --kind operator --name ana        ana answers, as ana
  aop token create --kind agent --feature-id checkout
  aop token revoke t_01J9ZQ4V7K3M2N1P0R5S6T7V8W")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token; it is shown once and stored only as a digest
    #[command(after_help = "Example:\n  aop token create --kind operator --name ana --expires 30d")]
    Create {
        /// operator (may answer) or agent (may ask for its feature and read it)
        #[arg(long)]
        kind: String,
        /// Whose it is; an operator's answers are signed with it
        #[arg(long)]
        name: Option<String>,
        /// The only feature an agent may ask for and read (without: only one-off questions over MCP)
        #[arg(long)]
        feature_id: Option<String>,
        /// An agent's role: planner, builder or qa
        #[arg(long, default_value = "builder")]
        role: String,
        /// How long it is good for, for instance 8h or 30d (default: until it is revoked)
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List the tokens, without their secrets
    #[command(after_help = "Example:\n  aop token list")]
    List,
    /// Take a token back, at once and for good
    #[command(after_help = "Example:\n  aop token revoke t_01J9ZQ4V7K3M2N1P0R5S6T7V8W")]
    Revoke {
        /// The token's id, as `aop token list` shows it
        token_id: String,
    },
}

/// Runs the chosen one.
pub(crate) fn run(global: &Global, args: TokenArgs) -> CommandResult {
    let session = Project::find(global)?.open()?;
    match args.command {
        TokenCommand::Create { kind, name, feature_id, role, expires } => {
            let new = NewToken {
                kind: TokenKind::parse(&kind)?,
                name,
                role: parse_role(&role)?,
                feature: feature_id.as_deref().map(FeatureId::parse).transpose()?,
                lives_ms: expires.as_deref().map(|text| lasting("expires", text, "")).transpose()?,
            };
            create(&session, new)
        }
        TokenCommand::List => list(&session),
        TokenCommand::Revoke { token_id } => {
            let record = session.wait(tokens::revoke(session.store(), &token_id))?;
            let text = format!("Token {} is revoked.", bold(&record.token_id));
            Ok(Reply::ok(Envelope::success(&record.shown()), text))
        }
    }
}

fn create(session: &Session, new: NewToken) -> CommandResult {
    let (record, token) = session.wait(tokens::create(session.store(), new))?;
    let mut data = record.shown();
    data["token"] = json!(token);
    let text = format!(
        "{token}\n\n{}",
        dim(&format!(
            "Shown once. Send it as `Authorization: Bearer …`; take it back with `aop token revoke {}`.",
            record.token_id
        ))
    );
    Ok(Reply::ok(Envelope::success(&data), text))
}

fn list(session: &Session) -> CommandResult {
    let records = session.wait(tokens::list(session.store()))?;
    let now = session.wait(session.store().now()).map_err(Refusal::from)?;
    let state = |record: &TokenRecord| match record.revoked_at {
        Some(_) => "revoked",
        None if record.is_good(now) => "good",
        None => "expired",
    };
    let items: Vec<Value> = records
        .iter()
        .map(|record| {
            let mut shown = record.shown();
            shown["state"] = json!(state(record));
            shown
        })
        .collect();
    let rows: Vec<Vec<String>> = items
        .iter()
        .map(|item| {
            let cell = |key: &str| clean(item[key].as_str().unwrap_or("-"));
            ["token_id", "kind", "name", "feature_id", "state", "expires_at"].map(cell).to_vec()
        })
        .collect();
    let text = if rows.is_empty() {
        "There are no tokens. `aop token create --kind operator --name YOU` makes one.".to_owned()
    } else {
        fitting(&["TOKEN", "KIND", "NAME", "FEATURE", "STATE", "EXPIRES"], &rows, None)
    };
    Ok(Reply::ok(Envelope::success(&json!({"items": items})), text))
}

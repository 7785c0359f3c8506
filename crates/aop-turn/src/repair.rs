//! What to do about a result that fails its schema, or is not read as it was written: the same engine session gets a few
//! corrective turns before the verdict stands. Repair turns are no attempts.

use crate::judge::Verdict;
use crate::outcome::Outcome;
use crate::quote::inline;

/// Reasons beyond this many are repeated to nobody.
const MAX_REASONS: usize = 20;

/// What to do with a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// The verdict stands.
    Accept,
    /// Send this text to the same engine session and judge its reply.
    Repair {
        /// Which round this is, from 1.
        round: u32,
        /// The text.
        text: String,
    },
}

/// Decides, after `rounds_done` repair rounds of at most `repair_rounds`.
pub fn next_step(verdict: &Verdict, rounds_done: u32, repair_rounds: u32) -> NextStep {
    let is_final = matches!(verdict.outcome, Outcome::Final { .. });
    if is_final || verdict.schema_reasons.is_empty() || rounds_done >= repair_rounds {
        return NextStep::Accept;
    }
    NextStep::Repair { round: rounds_done + 1, text: corrective_text(&verdict.schema_reasons) }
}

fn corrective_text(reasons: &[String]) -> String {
    let mut text = String::from("Your last message holds a result that cannot be taken as it stands:\n\n");
    for reason in reasons.iter().take(MAX_REASONS) {
        text.push_str(&format!("- {}\n", inline(reason)));
    }
    if reasons.len() > MAX_REASONS {
        text.push_str(&format!("- and {} more\n", reasons.len() - MAX_REASONS));
    }
    text.push_str(
        "\nThe work itself need not be repeated. Reply with the corrected result as one JSON object, complete and \
         with nothing around it, and with \"__SKILL_DONE__\": true as one of its fields.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::TurnErrorCode;

    fn failed(reasons: &[&str]) -> Verdict {
        Verdict {
            outcome: Outcome::Error { code: TurnErrorCode::OutputSchemaInvalid, message: String::new() },
            warnings: Vec::new(),
            evidence: Vec::new(),
            schema_reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
        }
    }

    #[test]
    fn a_failed_schema_is_repaired_up_to_the_limit() {
        let verdict = failed(&["/a: missing"]);
        let NextStep::Repair { round, text } = next_step(&verdict, 0, 2) else { panic!() };
        assert_eq!(round, 1);
        assert!(text.contains("- /a: missing\n") && text.contains("\"__SKILL_DONE__\": true"));
        assert!(matches!(next_step(&verdict, 1, 2), NextStep::Repair { round: 2, .. }));
        assert_eq!(next_step(&verdict, 2, 2), NextStep::Accept);
        assert_eq!(next_step(&verdict, 0, 0), NextStep::Accept);
    }

    #[test]
    fn nothing_else_is_repaired() {
        assert_eq!(next_step(&failed(&[]), 0, 2), NextStep::Accept);
        let done = Verdict { outcome: Outcome::Final { data: serde_json::Map::new() }, ..failed(&["x"]) };
        assert_eq!(next_step(&done, 0, 2), NextStep::Accept);
    }

    #[test]
    fn long_lists_are_cut() {
        let reasons: Vec<String> = (0..30).map(|n| format!("reason {n}")).collect();
        assert!(corrective_text(&reasons).contains("and 10 more"));
    }
}

//! Variables of the environment that say where the store is. Whoever hands them on by name (an agent program, to the MCP
//! servers that it starts) hands on an empty one where there is none, or, if it is too old to know how, the reference.

/// What somebody has set it to.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| is_given(name, value))
}

fn is_given(name: &str, value: &str) -> bool {
    !value.is_empty() && value != format!("${{{name}:-}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_was_handed_on_and_never_set_counts_as_not_set() {
        assert!(is_given("PGUSER", "somebody") && is_given("PGUSER", "${HOME:-}"));
        assert!(!is_given("PGUSER", "") && !is_given("PGUSER", "${PGUSER:-}"));
    }
}

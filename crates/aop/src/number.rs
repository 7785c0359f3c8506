//! Numbers on the command line: what is none is told what to write.

/// Reads a whole number that is not below `least`.
pub(crate) fn at_least<N>(least: i128) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: TryFrom<i128>,
{
    move |text| {
        let right = || match least {
            ..0 => "write a whole number".to_owned(),
            _ => format!("write a whole number, {least} or more"),
        };
        let number = text.trim().parse().ok().filter(|number| *number >= least).ok_or_else(right)?;
        N::try_from(number).map_err(|_| "write a smaller number".to_owned())
    }
}

/// Reads milliseconds; a variable that is set to nothing is not set.
pub(crate) fn millis_or(unset: u64) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| if text.is_empty() { Ok(unset) } else { at_least(0)(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_set_to_nothing_is_not_set() {
        let millis = millis_or(50);
        assert_eq!((millis(""), millis("0")), (Ok(50), Ok(0)));
        assert_eq!(millis("soon"), Err("write a whole number, 0 or more".to_owned()));
    }

    #[test]
    fn what_is_no_number_is_told_what_to_write() {
        let (count, code) = (at_least::<u32>(1), at_least::<i32>(i128::MIN));
        assert_eq!((count("7"), code("-9")), (Ok(7), Ok(-9)));
        for wrong in ["x", "", "0", "-3", "1.5", "0x10"] {
            assert_eq!(count(wrong), Err("write a whole number, 1 or more".to_owned()), "{wrong}");
        }
        assert_eq!(code("x"), Err("write a whole number".to_owned()));
        assert_eq!(count("99999999999"), Err("write a smaller number".to_owned()));
    }
}

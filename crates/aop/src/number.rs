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

#[cfg(test)]
mod tests {
    use super::*;

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

//! A row of the result table: label, value, limit, and whether the value is within it.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Figure {
    /// Milliseconds of CPU time, unless the row says otherwise.
    Ms(f64),
    Mb(f64),
    MbPerSecond(f64),
    Count(f64),
}

impl Figure {
    fn number(self) -> f64 {
        match self {
            Self::Ms(number) | Self::Mb(number) | Self::MbPerSecond(number) | Self::Count(number) => number,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Ms(ms) => format!("{ms:.1} ms"),
            Self::Mb(mb) => format!("{mb:.0} MB"),
            Self::MbPerSecond(speed) => format!("{speed:.0} MB/s"),
            Self::Count(count) => format!("{count:.1}"),
        };
        // `pad` respects the width that the row asks for; `write!` would ignore it.
        f.pad(&text)
    }
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtMost(Figure),
    AtLeast(Figure),
    None,
}

#[derive(Debug)]
pub struct Row {
    what: String,
    measured: Option<Figure>,
    limit: Limit,
    note: String,
}

impl Row {
    /// A row with an upper limit.
    pub fn new(what: &str, measured: Figure, most: Figure) -> Self {
        Self {
            what: what.to_owned(),
            measured: Some(measured),
            limit: Limit::AtMost(most),
            note: String::new(),
        }
    }

    pub fn at_least(what: &str, measured: Figure, least: Figure) -> Self {
        Self { limit: Limit::AtLeast(least), ..Self::new(what, measured, least) }
    }

    /// A row for information, without a limit.
    pub fn free(what: &str, measured: Figure) -> Self {
        Self { limit: Limit::None, ..Self::new(what, measured, measured) }
    }

    pub fn note(what: &str, note: &str) -> Self {
        Self { what: what.to_owned(), measured: None, limit: Limit::None, note: note.to_owned() }
    }

    pub fn holds(&self) -> bool {
        // A value that could not be measured on this machine breaks no limit.
        let Some(measured) = self.measured else { return true };
        match self.limit {
            Limit::AtMost(most) => measured.number() <= most.number(),
            Limit::AtLeast(least) => measured.number() >= least.number(),
            Limit::None => true,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        let Some(measured) = self.measured else { return write!(f, "{what:<50} {}", self.note) };
        let limit = match self.limit {
            Limit::AtMost(most) => format!("at most {most}"),
            Limit::AtLeast(least) => format!("at least {least}"),
            Limit::None => return write!(f, "{what:<50} {measured:>10}"),
        };
        let verdict = if self.holds() { "ok" } else { "over" };
        write!(f, "{what:<50} {measured:>10}  {limit:<18} {verdict}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_up_to_itself() {
        let most = |ms| Row::new("x", Figure::Ms(ms), Figure::Ms(5.0)).holds();
        assert_eq!([most(4.9), most(5.0), most(5.1)], [true, true, false]);
        let least =
            |speed| Row::at_least("x", Figure::MbPerSecond(speed), Figure::MbPerSecond(100.0)).holds();
        assert_eq!([least(99.0), least(100.0)], [false, true]);
        assert!(Row::free("x", Figure::Mb(1e9)).holds());
    }

    #[test]
    fn a_line_says_all_of_it() {
        let row = Row::new("start-up", Figure::Ms(12.34), Figure::Ms(3.0)).to_string();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["start-up", "12.3", "ms", "at", "most", "3.0", "ms", "over"]);
        assert!(Row::note("execs", "not counted").to_string().ends_with("not counted"));
    }
}

//! A row of the result table: label, value, limit, and whether the value is within it.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum BenchFigure {
    /// Milliseconds of CPU time, unless the row says otherwise.
    Milliseconds(f64),
    Megabytes(f64),
    MbPerSecond(f64),
    Count(f64),
}

impl BenchFigure {
    fn as_number(self) -> f64 {
        match self {
            Self::Milliseconds(number) | Self::Megabytes(number) | Self::MbPerSecond(number) | Self::Count(number) => {
                number
            }
        }
    }
}

impl fmt::Display for BenchFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Milliseconds(ms) => format!("{ms:.1} ms"),
            Self::Megabytes(mb) => format!("{mb:.0} MB"),
            Self::MbPerSecond(speed) => format!("{speed:.0} MB/s"),
            Self::Count(count) => format!("{count:.1}"),
        };
        // `pad` respects the width that the row asks for; `write!` would ignore it.
        f.pad(&text)
    }
}

#[derive(Clone, Copy, Debug)]
enum FigureLimit {
    AtMost(BenchFigure),
    AtLeast(BenchFigure),
    None,
}

#[derive(Debug)]
pub struct BenchRow {
    label: String,
    measured: Option<BenchFigure>,
    limit: FigureLimit,
    note: String,
}

impl BenchRow {
    /// A row with an upper limit.
    pub fn new(label: &str, measured: BenchFigure, upper_limit: BenchFigure) -> Self {
        Self {
            label: label.to_owned(),
            measured: Some(measured),
            limit: FigureLimit::AtMost(upper_limit),
            note: String::new(),
        }
    }

    pub fn at_least(label: &str, measured: BenchFigure, lower_limit: BenchFigure) -> Self {
        Self { limit: FigureLimit::AtLeast(lower_limit), ..Self::new(label, measured, lower_limit) }
    }

    /// A row for information, without a limit.
    pub fn without_limit(label: &str, measured: BenchFigure) -> Self {
        Self { limit: FigureLimit::None, ..Self::new(label, measured, measured) }
    }

    pub fn from_note(label: &str, note: &str) -> Self {
        Self { label: label.to_owned(), measured: None, limit: FigureLimit::None, note: note.to_owned() }
    }

    /// A row for a number of programs that could not be counted.
    pub fn without_strace(label: &str) -> Self {
        Self::from_note(label, "not measured: there is no `strace` here")
    }

    pub fn is_within_limit(&self) -> bool {
        // A value that could not be measured on this machine breaks no limit.
        let Some(measured) = self.measured else { return true };
        match self.limit {
            FigureLimit::AtMost(upper_limit) => measured.as_number() <= upper_limit.as_number(),
            FigureLimit::AtLeast(lower_limit) => measured.as_number() >= lower_limit.as_number(),
            FigureLimit::None => true,
        }
    }
}

impl fmt::Display for BenchRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.label;
        let Some(measured) = self.measured else { return write!(f, "{what:<50} {}", self.note) };
        let limit = match self.limit {
            FigureLimit::AtMost(most) => format!("at most {most}"),
            FigureLimit::AtLeast(least) => format!("at least {least}"),
            FigureLimit::None => return write!(f, "{what:<50} {measured:>10}"),
        };
        let verdict = if self.is_within_limit() { "ok" } else { "over" };
        write!(f, "{what:<50} {measured:>10}  {limit:<18} {verdict}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_equal_to_its_limit_is_allowed() {
        let most =
            |ms| BenchRow::new("x", BenchFigure::Milliseconds(ms), BenchFigure::Milliseconds(5.0)).is_within_limit();
        assert_eq!([most(4.9), most(5.0), most(5.1)], [true, true, false]);
        let least = |speed| {
            BenchRow::at_least("x", BenchFigure::MbPerSecond(speed), BenchFigure::MbPerSecond(100.0)).is_within_limit()
        };
        assert_eq!([least(99.0), least(100.0)], [false, true]);
        assert!(BenchRow::without_limit("x", BenchFigure::Megabytes(1e9)).is_within_limit());
    }

    #[test]
    fn a_row_shows_value_limit_and_verdict() {
        let row =
            BenchRow::new("start-up", BenchFigure::Milliseconds(12.34), BenchFigure::Milliseconds(3.0)).to_string();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["start-up", "12.3", "ms", "at", "most", "3.0", "ms", "over"]);
        assert!(BenchRow::from_note("execs", "not counted").to_string().ends_with("not counted"));
    }
}

//! A row of the result table: label, value, limit, and whether the value is within it.
//!
//! Times are judged as multiples of a calibration, since machines differ; numbers and memory are judged as they are.

use std::fmt;

use anyhow::{Error, Result};

use super::calibration::{Calibration, TimeLimit};

/// By how much CPU time may exceed its limit where the machine is shared and the measurement is short.
const SHORT_SLACK: f64 = 4.0;
const LABEL_WIDTH: usize = 62;

/// A measured value that no machine changes much.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum BenchFigure {
    Megabytes(f64),
    Count(f64),
    /// A quotient of two times.
    Ratio(f64),
    /// For information only; no row has a limit in it.
    Seconds(f64),
}

impl BenchFigure {
    fn as_number(self) -> f64 {
        match self {
            Self::Megabytes(number) | Self::Count(number) | Self::Ratio(number) | Self::Seconds(number) => number,
        }
    }
}

impl fmt::Display for BenchFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Megabytes(mb) => format!("{mb:.0} MB"),
            Self::Count(count) => format!("{count:.1}"),
            Self::Ratio(ratio) => format!("{ratio:.2} ×"),
            // A sum of nothing is a negative zero.
            Self::Seconds(seconds) => format!("{:.1} s", seconds + 0.0),
        };
        // `pad` respects the width that the row asks for; `write!` would ignore it.
        f.pad(&text)
    }
}

/// A measured time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BenchTime {
    Cpu(f64),
    Wall(f64),
}

impl fmt::Display for BenchTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Cpu(ms) | Self::Wall(ms)) = self;
        // A sum of nothing is a negative zero.
        let ms = ms + 0.0;
        f.pad(&if ms < 1.0 { format!("{ms:.2} ms") } else { format!("{ms:.1} ms") })
    }
}

/// Which limits count in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitRule {
    All,
    /// Numbers and memory as they are, CPU time with slack. Waits and quotients of times are not judged: what else the machine
    /// does decides them as much as the program.
    WithSlack,
    /// Numbers and memory. The program was built without optimising.
    CountsOnly,
    None,
}

/// What a limit is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitKind {
    Amount,
    Ratio,
    CpuTime,
    WallTime,
}

impl LimitRule {
    /// By how much a limit may be exceeded; `None` if it does not count.
    fn find_slack(self, kind: LimitKind) -> Option<f64> {
        match (self, kind) {
            (Self::All, _) | (Self::WithSlack | Self::CountsOnly, LimitKind::Amount) => Some(1.0),
            (Self::WithSlack, LimitKind::CpuTime) => Some(SHORT_SLACK),
            (Self::WithSlack | Self::CountsOnly | Self::None, _) => None,
        }
    }
}

#[derive(Debug)]
enum RowValue {
    Figure { measured: BenchFigure, most: Option<BenchFigure> },
    Time { measured: BenchTime, limit: TimeLimit },
    Note(String),
    Failure(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowVerdict {
    Within,
    /// Over its limit, but not by more than a short measurement on a shared machine may be.
    Tolerated,
    Exceeded,
    /// It has no limit, or none that counts in this run.
    NotJudged,
    /// The row could not be taken.
    Failed,
}

#[derive(Debug)]
pub struct BenchRow {
    label: String,
    value: RowValue,
}

impl BenchRow {
    fn from_value(label: &str, value: RowValue) -> BenchRow {
        BenchRow { label: label.to_owned(), value }
    }

    /// A row with an upper limit.
    pub fn new(label: &str, measured: BenchFigure, upper_limit: BenchFigure) -> BenchRow {
        Self::from_value(label, RowValue::Figure { measured, most: Some(upper_limit) })
    }

    /// A row for information, without a limit.
    pub fn without_limit(label: &str, measured: BenchFigure) -> BenchRow {
        Self::from_value(label, RowValue::Figure { measured, most: None })
    }

    /// A time, which is shown as a multiple of a calibration, too.
    pub fn from_time(label: &str, measured: BenchTime, limit: TimeLimit) -> BenchRow {
        Self::from_value(label, RowValue::Time { measured, limit })
    }

    pub fn from_note(label: &str, note: &str) -> BenchRow {
        Self::from_value(label, RowValue::Note(note.to_owned()))
    }

    /// A row that could not be taken. The rows beside it are shown nevertheless.
    pub fn from_failure(label: &str, error: &Error) -> BenchRow {
        Self::from_value(label, RowValue::Failure(format!("{error:#}")))
    }

    /// Turns a measurement that failed into a row that says so, so that the other rows are shown.
    pub fn from_result(label: &str, result: Result<BenchRow>) -> BenchRow {
        result.unwrap_or_else(|error| Self::from_failure(label, &error))
    }

    /// A row for a number of programs that could not be counted.
    pub fn without_strace(label: &str) -> BenchRow {
        Self::from_note(label, "not measured: there is no `strace` here")
    }

    pub fn judge_limit(&self, calibration: &Calibration, rule: LimitRule) -> RowVerdict {
        let (kind, number, most) = match &self.value {
            RowValue::Note(_) => return RowVerdict::NotJudged,
            RowValue::Failure(_) => return RowVerdict::Failed,
            RowValue::Figure { measured, most } => {
                let kind = if matches!(measured, BenchFigure::Ratio(_)) { LimitKind::Ratio } else { LimitKind::Amount };
                (kind, measured.as_number(), most.map(BenchFigure::as_number))
            }
            RowValue::Time { measured, limit } => {
                let kind = match measured {
                    BenchTime::Cpu(_) => LimitKind::CpuTime,
                    BenchTime::Wall(_) => LimitKind::WallTime,
                };
                (kind, calibration.find_multiple(*measured, limit.unit), limit.most)
            }
        };
        match most.zip(rule.find_slack(kind)) {
            None => RowVerdict::NotJudged,
            Some((most, _)) if number <= most => RowVerdict::Within,
            Some((most, slack)) if number <= most * slack => RowVerdict::Tolerated,
            Some(_) => RowVerdict::Exceeded,
        }
    }

    /// The line of the table.
    pub fn to_line(&self, calibration: &Calibration, rule: LimitRule) -> String {
        let label = format!("{:<LABEL_WIDTH$}", self.label);
        let (value_text, limit_text) = match &self.value {
            RowValue::Note(note) => return format!("{label}   {note}"),
            RowValue::Failure(reason) => return format!("{label}   failed: {reason}"),
            RowValue::Figure { measured, most } => (format!("{measured:>10}"), most.map(|most| most.to_string())),
            RowValue::Time { measured, limit } => {
                let multiple = calibration.find_multiple(*measured, limit.unit);
                let value_text = format!("{measured:>10} = {:>7} × {}", format_multiple(multiple), limit.unit);
                (value_text, limit.most.map(|most| format!("{} ×", format_multiple(most))))
            }
        };
        let Some(limit_text) = limit_text else { return format!("{label} {value_text}") };
        let verdict = match self.judge_limit(calibration, rule) {
            RowVerdict::Within => "ok",
            RowVerdict::Tolerated => &format!("over, allowed here up to {SHORT_SLACK} times"),
            RowVerdict::Exceeded => "over",
            RowVerdict::NotJudged | RowVerdict::Failed => "not judged",
        };
        format!("{label} {value_text}, at most {limit_text}  {verdict}")
    }
}

fn format_multiple(multiple: f64) -> String {
    if multiple < 1.0 { format!("{multiple:.2}") } else { format!("{multiple:.1}") }
}

#[cfg(test)]
mod tests {
    use super::super::calibration::CalibrationUnit;
    use super::super::calibration::tests::sample_calibration;
    use super::*;

    fn judge(row: &BenchRow, rule: LimitRule) -> RowVerdict {
        row.judge_limit(&sample_calibration(), rule)
    }

    fn cpu_row(ms: f64) -> BenchRow {
        BenchRow::from_time("x", BenchTime::Cpu(ms), CalibrationUnit::Process.at_most(2.0))
    }

    #[test]
    fn a_value_equal_to_its_limit_is_allowed() {
        let judge_count =
            |count| judge(&BenchRow::new("x", BenchFigure::Count(count), BenchFigure::Count(5.0)), LimitRule::All);
        assert_eq!([4.9, 5.0, 5.1].map(judge_count), [RowVerdict::Within, RowVerdict::Within, RowVerdict::Exceeded]);
        let unlimited_row = BenchRow::without_limit("x", BenchFigure::Megabytes(1e9));
        assert_eq!(judge(&unlimited_row, LimitRule::All), RowVerdict::NotJudged);
    }

    #[test]
    fn times_are_judged_by_their_multiple() {
        // A start of `/bin/true` takes half a millisecond of CPU time and one of wall time in the sample.
        assert_eq!(judge(&cpu_row(1.0), LimitRule::All), RowVerdict::Within);
        assert_eq!(judge(&cpu_row(1.1), LimitRule::All), RowVerdict::Exceeded);
        let wall_row = BenchRow::from_time("x", BenchTime::Wall(1.1), CalibrationUnit::Process.at_most(2.0));
        assert_eq!(judge(&wall_row, LimitRule::All), RowVerdict::Within);
    }

    #[test]
    fn the_rule_decides_which_limits_count() {
        let verdicts = |row: &BenchRow| {
            [LimitRule::All, LimitRule::WithSlack, LimitRule::CountsOnly, LimitRule::None].map(|rule| judge(row, rule))
        };
        use RowVerdict::{Exceeded, NotJudged, Tolerated};
        let count_row = BenchRow::new("x", BenchFigure::Count(6.0), BenchFigure::Count(5.0));
        assert_eq!(verdicts(&count_row), [Exceeded, Exceeded, Exceeded, NotJudged]);
        assert_eq!(verdicts(&cpu_row(3.9)), [Exceeded, Tolerated, NotJudged, NotJudged]);
        assert_eq!(verdicts(&cpu_row(4.1)), [Exceeded, Exceeded, NotJudged, NotJudged]);
        let wall_row = BenchRow::from_time("x", BenchTime::Wall(99.0), CalibrationUnit::Git.at_most(2.0));
        assert_eq!(verdicts(&wall_row), [Exceeded, NotJudged, NotJudged, NotJudged]);
        let ratio_row = BenchRow::new("x", BenchFigure::Ratio(2.8), BenchFigure::Ratio(1.0));
        assert_eq!(verdicts(&ratio_row), [Exceeded, NotJudged, NotJudged, NotJudged]);
    }

    #[test]
    fn what_could_not_be_taken_is_a_failure_under_every_rule() {
        let row = BenchRow::from_result("execs", Err(anyhow::anyhow!("no agent").context("the review failed")));
        assert_eq!(judge(&row, LimitRule::None), RowVerdict::Failed);
        let line = row.to_line(&sample_calibration(), LimitRule::None);
        assert!(line.ends_with("failed: the review failed: no agent"), "{line}");
        let note_row = BenchRow::without_strace("execs");
        assert_eq!(judge(&note_row, LimitRule::All), RowVerdict::NotJudged);
    }

    #[test]
    fn a_row_shows_value_multiple_limit_and_verdict() {
        let words = |row: &BenchRow, rule| {
            let line = row.to_line(&sample_calibration(), rule);
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let time_row = BenchRow::from_time("wait", BenchTime::Wall(12.6), CalibrationUnit::Git.at_most(3.0));
        assert_eq!(words(&time_row, LimitRule::All), "wait 12.6 ms = 3.1 × git start, at most 3.0 × over");
        assert_eq!(words(&time_row, LimitRule::None), "wait 12.6 ms = 3.1 × git start, at most 3.0 × not judged");
        let slow_words = words(&cpu_row(1.5), LimitRule::WithSlack);
        assert_eq!(slow_words, "x 1.5 ms = 3.0 × /bin/true, at most 2.0 × over, allowed here up to 4 times");
        let shown_row = BenchRow::from_time("sync", BenchTime::Cpu(0.25), CalibrationUnit::Cpu.without_limit());
        assert_eq!(words(&shown_row, LimitRule::All), "sync 0.25 ms = 0.03 × fixed loop");
        let memory_row = BenchRow::new("memory", BenchFigure::Megabytes(12.0), BenchFigure::Megabytes(20.0));
        assert_eq!(words(&memory_row, LimitRule::All), "memory 12 MB, at most 20 MB ok");
    }
}

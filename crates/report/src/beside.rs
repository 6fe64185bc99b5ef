//! Draws several runs at once: every line starts with the label of its run, and at the end there is one line per run.
//!
//! There is deliberately no live view of several runs: a board is about one run. `tribunal status` shows them all.

use std::io::{self, Write};

use tribunal_core::{
    event::{Entry, Summary},
    ids::RunId,
    progress::Progress,
    reason::Outcome,
};

use crate::{
    Lines, Mode, Reporter,
    columns::{cut, escaped, width},
    style::{Screen, Style},
    words,
};

/// The maximum width of a label. If a run's id is longer, its unique suffix is kept.
const WIDEST: usize = 18;
/// The width of an id's unique suffix, with its dash.
const TAIL: usize = 5;
/// The separator between a label and its line.
const RULE: &str = " │ ";

/// The label before every line of one run.
#[derive(Clone, Debug)]
pub struct Label {
    name: String,
    columns: usize,
    /// The position among the runs, which chooses the colour.
    nth: usize,
}

impl Label {
    /// Makes labels for runs that have no id yet, from the names that their ids will start with.
    pub fn all(names: &[String]) -> Vec<Label> {
        // Room for the suffix is reserved now: the column must not move once the ids are known.
        let longest = names.iter().map(|name| width(name) + TAIL).max().unwrap_or_default();
        let label =
            |(nth, name): (usize, &String)| Label { name: name.clone(), columns: longest.min(WIDEST), nth };
        names.iter().enumerate().map(label).collect()
    }

    /// Labels the run with its id from now on.
    fn is(&mut self, run: &RunId) {
        self.name = run.as_str().to_string();
    }

    /// The label at its fixed width: `prd-k3f9`, `architectur…-k3f9`.
    fn text(&self) -> String {
        let name = escaped(&self.name);
        let short = match name.rfind('-') {
            // The suffix is what tells runs of one subject apart, so the part before it is cut.
            Some(dash) if width(&name) > self.columns && width(&name[dash..]) <= TAIL => {
                let (head, tail) = name.split_at(dash);
                cut(head, self.columns - width(tail)) + tail
            }
            _ => cut(&name, self.columns),
        };
        let blanks = self.columns.saturating_sub(width(&short));
        format!("{short}{:blanks$}", "")
    }
}

/// Reports one of several runs, as labelled lines.
#[derive(Debug)]
pub struct Beside<W> {
    lines: Lines<Vec<u8>>,
    out: W,
    screen: Screen,
    label: Label,
}

impl<W: Write> Beside<W> {
    pub fn new(out: W, screen: Screen, mode: Mode, label: Label) -> Beside<W> {
        // The inner reporter wraps its lines, so it has to know how much room the label leaves.
        let room = |columns: usize| columns.saturating_sub(label.columns + width(RULE));
        let narrow = Screen { width: screen.width.map(room), ..screen.clone() };
        Beside { lines: Lines::new(Vec::new(), narrow, mode), out, screen, label }
    }

    /// Labels the run with its id from now on.
    pub fn meet(&mut self, run: &RunId) {
        self.label.is(run);
    }

    /// Writes something about the run that is not in its journal.
    pub fn notice(&mut self, text: &str) -> io::Result<()> {
        let label = self.screen.paint(Style::Run(self.label.nth), &self.label.text());
        // Blank lines separate paragraphs of one run; between the lines of several runs they would only tear them apart.
        for line in text.lines().filter(|line| !line.is_empty()) {
            writeln!(self.out, "{label}{RULE}{line}")?;
        }
        self.out.flush()
    }

    /// Writes what the inner reporter drew, with labels. Its error is returned after its output is out.
    fn pass_on(&mut self, drawn: io::Result<()>) -> io::Result<()> {
        let text = self.lines.take();
        // Lines that were drawn before an error are still worth showing.
        self.notice(&String::from_utf8_lossy(&text))?;
        drawn
    }
}

impl<W: Write> Reporter for Beside<W> {
    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        // Labels carry a provisional name until the first entry tells the id.
        self.meet(&entry.run);
        let drawn = self.lines.entry(entry);
        self.pass_on(drawn)
    }

    fn past(&mut self, entry: &Entry) {
        self.meet(&entry.run);
        self.lines.past(entry);
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        let drawn = self.lines.progress(progress);
        self.pass_on(drawn)
    }
}

/// One run of several, and how it ended.
#[derive(Debug)]
pub struct Close<'a> {
    pub run: Option<&'a RunId>,
    pub subject: &'a str,
    pub came: Came<'a>,
}

/// How one of several runs ended.
#[derive(Debug)]
pub enum Came<'a> {
    Ended(&'a Summary),
    /// The run began and broke off without recording an ending.
    Broke(&'a str),
    /// The run never began.
    NotStarted(&'a str),
}

/// Renders one line per run, in the order in which the subjects were named.
pub fn close(rows: &[Close<'_>], screen: &Screen) -> String {
    let id = |row: &Close<'_>| row.run.map_or_else(|| "-".to_string(), |run| escaped(run.as_str()));
    let columns = rows.iter().map(|row| width(&id(row))).max().unwrap_or_default();
    let mut out = format!("{}:\n", words::count(u32::try_from(rows.len()).unwrap_or(u32::MAX), "run"));
    for row in rows {
        let (style, word, rest) = match &row.came {
            Came::Ended(summary) => {
                let (style, word) = outcome(summary.outcome);
                (style, word, words::tally(&summary.findings))
            }
            Came::Broke(why) => (Style::Bad, "broke off", why.to_string()),
            Came::NotStarted(why) => (Style::Warn, "not started", why.to_string()),
        };
        let id = id(row);
        let blanks = columns - width(&id);
        let head = format!("  {id}{:blanks$}  ", "");
        let word = format!("{word:<11}");
        // The reason why a subject cannot be reviewed usually starts with its name, which is not repeated.
        let text = if rest.starts_with(row.subject) { rest } else { format!("{} · {rest}", row.subject) };
        let text = screen.fit(width(&head) + word.len() + 3, &text);
        out.push_str(&format!("{head}{}  {text}\n", screen.paint(style, &word)));
    }
    out
}

/// The word for an outcome, and its style.
pub(crate) fn outcome(outcome: Option<Outcome>) -> (Style, &'static str) {
    // A cancelled run ended the way the user asked for.
    match outcome {
        Some(outcome @ (Outcome::Resolved | Outcome::Cancelled)) => (Style::Good, outcome.as_str()),
        Some(outcome @ Outcome::Waiting) => (Style::Warn, outcome.as_str()),
        Some(outcome @ (Outcome::Halted | Outcome::Failed)) => (Style::Bad, outcome.as_str()),
        None => (Style::Warn, "stopped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(names: &[&str]) -> Vec<Label> {
        Label::all(&names.iter().map(|name| name.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn labels_are_as_wide_as_the_widest_and_keep_what_tells_runs_apart() {
        let mut both = labels(&["prd", "architecture-of-the-whole"]);
        assert_eq!(both[0].text(), "prd               ");
        assert_eq!(both[1].text(), "architecture-of-t…");
        both[0].is(&RunId::new("prd-k3f9"));
        both[1].is(&RunId::new("architecture-of-the-whol-x2m1"));
        assert_eq!(both[0].text(), "prd-k3f9          ");
        assert_eq!(both[1].text(), "architecture…-x2m1");
        let mut short = labels(&["a", "be"]);
        short[0].is(&RunId::new("a-k3f9"));
        assert_eq!(short[0].text(), "a-k3f9 ");
    }

    #[test]
    fn every_line_stands_behind_its_run_and_none_is_empty() {
        let label = labels(&["prd", "plan"]).remove(1);
        let screen = Screen { colour: true, ..Screen::default() };
        let mut beside = Beside::new(Vec::new(), screen, Mode::default(), label);
        beside.notice("one\n\ntwo").unwrap();
        let text = String::from_utf8(beside.out).unwrap();
        assert_eq!(text, "\x1b[35mplan     \x1b[0m │ one\n\x1b[35mplan     \x1b[0m │ two\n");
    }

    #[test]
    fn the_last_lines_say_of_each_what_became_of_it() {
        let runs = [RunId::new("prd-k3f9")];
        let rows = [
            Close { run: Some(&runs[0]), subject: "prd.md", came: Came::Broke("the disk is full") },
            Close { run: None, subject: "a\u{202e}.md", came: Came::NotStarted("stopped before its turn") },
        ];
        assert_eq!(
            close(&rows, &Screen::default()),
            "2 runs:\n  prd-k3f9  broke off    prd.md · the disk is full\n  \
             -         not started  a.md · stopped before its turn\n"
        );
    }
}

//! Renders the answers of commands as tables and lists.

use std::fmt::Write;

use tribunal_core::{
    challenge,
    event::Summary,
    finding::{Dismissal, Evidence, Finding, Status},
    ids::{FindingId, Hash},
    reason::Outcome,
    stamp::Stamp,
    tracker,
    view::{Phase, RunView},
};

use crate::{
    calls::{Call, by_vendor},
    clean, escaped,
    rulings::{Ruling, Rulings},
    style::{Screen, Style},
    words,
};

/// A run as `runs` and `status` list it: its journal, and whether a process works on it.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    pub view: &'a RunView,
    pub live: bool,
}

impl Standing<'_> {
    pub fn state(&self) -> RunState {
        match (&self.view.phase, self.live) {
            (Phase::Running, true) => RunState::Running,
            // The journal has no ending and no process holds the run: it crashed.
            (Phase::Running, false) => RunState::Died,
            (Phase::Parked(summary) | Phase::Finished(summary), _) => {
                summary.outcome.map_or(RunState::Stopped, RunState::Ended)
            }
        }
    }

    /// The state in one word.
    pub fn word(&self) -> &'static str {
        self.state().as_str()
    }
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    Running,
    /// The journal has no ending, and no process works on the run.
    Died,
    /// The run was stopped before it reached an outcome.
    Stopped,
    /// The run ended, or waits, with this outcome.
    Ended(Outcome),
}

impl RunState {
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Died => "died",
            RunState::Stopped => "stopped",
            RunState::Ended(outcome) => outcome.as_str(),
        }
    }
}

/// Renders one line per run.
pub fn runs(standings: &[Standing<'_>], screen: &Screen) -> String {
    let mut out = String::new();
    for standing in standings {
        let view = standing.view;
        let run = run_of(view);
        let subject = view.settings.as_ref().map(|settings| settings.subject.title()).unwrap_or_default();
        let style = style_of(standing);
        // The word is padded before it is painted, because colour codes have no width.
        let word = screen.paint(style, &format!("{:<9}", standing.word()));
        let subject = screen.fit(90, &subject);
        let _ = writeln!(
            out,
            "{run:<20} {word} {}  {:<32} {:<19} {subject}",
            view.started.utc(),
            words::tally(&view.counts()),
            used(view),
        );
    }
    out
}

/// Describes what a run has used, for a table cell.
fn used(view: &RunView) -> String {
    // A run that ended has its totals in the summary; one under way only has the sum so far.
    match view.summary() {
        Some(summary) => words::used(summary.tokens, summary.cost, summary.notional),
        None => words::used(view.spent.tokens, view.spent.cost, view.spent.notional),
    }
}

/// The run's id as the user can type it.
fn run_of(view: &RunView) -> String {
    view.run.as_ref().map(|run| escaped(run.as_str())).unwrap_or_default()
}

/// The style of a run's state.
fn style_of(standing: &Standing<'_>) -> Style {
    match standing.state() {
        RunState::Ended(Outcome::Resolved) => Style::Good,
        RunState::Ended(Outcome::Waiting) | RunState::Stopped => Style::Warn,
        RunState::Running => Style::Bold,
        RunState::Died | RunState::Ended(Outcome::Halted | Outcome::Failed | Outcome::Cancelled) => {
            Style::Bad
        }
    }
}

/// Renders one run in a few lines.
pub fn status(standing: &Standing<'_>, screen: &Screen) -> String {
    let view = standing.view;
    let mut out = String::new();
    let run = run_of(view);
    let subject = view.settings.as_ref().map(|settings| clean(&settings.subject.title())).unwrap_or_default();
    let word = screen.paint(style_of(standing), standing.word());
    let _ = writeln!(out, "{} {word} · {subject}", screen.paint(Style::Bold, &run));
    match view.summary() {
        Some(summary) => {
            let _ = writeln!(out, "  {}{}", summary.reason.row().says, clean_detail(summary));
            let _ = writeln!(out, "  {} · {}", words::tally(&view.counts()), words::spent(summary));
        }
        None => {
            let used = used(view);
            // A run that has just started has used nothing yet.
            let used = if used.is_empty() { used } else { format!(" · {used}") };
            let rounds = words::count(view.rounds, "round");
            let _ = writeln!(out, "  {rounds} held · {}{used}", words::tally(&view.counts()));
        }
    }
    // A crashed run waits for nothing, although its journal still says so.
    if standing.live {
        for (agent, until_ms) in view.awaited() {
            let until = Stamp { wall_ms: until_ms, awake_ms: 0 }.utc();
            let text =
                format!("{} is at its usage limit; the run waits until {until} UTC", clean(agent.as_str()));
            let _ = writeln!(out, "  {}", screen.paint(Style::Warn, &text));
        }
    }
    // Refuted findings are named because they disappear from the counts of open ones.
    let refuted = |finding: &&Finding| finding.status == Status::Dismissed { why: Dismissal::Invalid };
    let refuted: Vec<FindingId> = view.findings.values().filter(refuted).map(|finding| finding.id).collect();
    if !refuted.is_empty() {
        let _ = writeln!(out, "  refuted by challengers: {}", words::ids(&refuted));
    }
    if let Some(found) = &view.confidence {
        let _ =
            writeln!(out, "  {}; for gates {}, {}", words::confidence(found), found.for_gates, found.band);
    }
    if let Some(tracker) = &view.tracker {
        let _ = writeln!(out, "  tracker: {}", escaped(tracker));
    }
    let mut steps = crate::next_steps(view, &screen.program);
    // Only the lock tells that a run crashed, so the journal's own suggestions do not include this command.
    if standing.state() == RunState::Died {
        steps.insert(0, format!("{} resume {run}", screen.program));
    }
    for (index, step) in steps.iter().enumerate() {
        let lead = if index == 0 { "next:" } else { "" };
        let _ = writeln!(out, "  {lead:<6}{}", escaped(step));
    }
    out
}

/// The detail of an ending, unless it only repeats the text of its reason.
pub(crate) fn clean_detail(summary: &Summary) -> String {
    let says = summary.reason.row().says;
    if summary.detail == says { String::new() } else { format!(": {}", clean(&summary.detail)) }
}

/// Renders findings with their evidence, the verdict of challengers and the last thing that happened to them.
pub fn findings<'a>(
    findings: impl IntoIterator<Item = &'a Finding>,
    rulings: &Rulings,
    screen: &Screen,
) -> String {
    let mut out = String::new();
    for finding in findings {
        let place = finding.place.as_ref().map(|place| clean(&place.to_string())).unwrap_or_default();
        let found = finding.found.map(|found| format!("  ({found})")).unwrap_or_default();
        let head = format!("{:<4} {:<9}", finding.id.to_string(), finding.severity.as_str());
        let head = screen.severity(finding.severity, &head);
        let _ = writeln!(out, "{head} {}  {place}{found}", clean(&tracker::status(&finding.status)));
        let _ = writeln!(out, "{}", screen.wrap(5, &finding.description));
        let evidence = match &finding.evidence {
            Evidence::Quote { text } => format!("“{text}”"),
            Evidence::Absence { heading, terms } => {
                format!("nothing about {} under “{heading}”", terms.join(", "))
            }
        };
        let _ = writeln!(out, "{}", screen.paint(Style::Dim, &screen.wrap(5, &evidence)));
        let ruling = rulings.get(finding.id);
        if let Some(ruling) = ruling {
            let _ = writeln!(out, "{}", screen.wrap(5, &challenged(ruling)));
        }
        // The ruling already says what the last note says.
        let told = ruling.is_some() && challenge::told(finding) == Some(finding.last_note());
        // The first note only records that the finding was raised.
        if finding.history.len() > 1 && !told {
            let _ = writeln!(out, "{}", screen.wrap(5, &format!("last: {}", finding.last_note())));
        }
        if let Some(other) = finding.maybe_same_as {
            let _ = writeln!(out, "{}", screen.wrap(5, &format!("maybe the same as {other}")));
        }
    }
    out
}

/// Describes a ruling: `challenged: refuted by 2 of 2 challengers: it is excluded (“…”)`.
fn challenged(ruling: &Ruling) -> String {
    let (note, counter) = ruling.against().unwrap_or_default();
    let note = if note.is_empty() { String::new() } else { format!(": {note}") };
    let counter = if counter.is_empty() { String::new() } else { format!(" (“{counter}”)") };
    format!("challenged: {}{note}{counter}", ruling.says())
}

/// Renders one line per call of an agent: the prompt and the output. `blob_bytes` returns the length of a stored blob.
pub fn calls(calls: &[Call<'_>], bytes: &dyn Fn(&Hash) -> Option<u64>) -> String {
    // Keys and names are escaped before they are measured, or columns would not line up.
    let name = |call: &Call<'_>| (escaped(call.key.as_str()), clean(call.task.agent.as_str()));
    let names: Vec<(String, String)> = calls.iter().map(name).collect();
    let key = names.iter().map(|(key, _)| key.len()).max().unwrap_or_default();
    let agent = names.iter().map(|(_, agent)| agent.len()).max().unwrap_or_default();
    let driver = calls.iter().map(|call| clean(&call.driver).len()).max().unwrap_or_default().max(8);
    let blob = |hash: Option<&Hash>| match hash {
        None => format!("{:>9}        {:<12}", "-", ""),
        Some(hash) => match bytes(hash) {
            Some(bytes) => format!("{:>9} bytes  {:<12}", words::thousands(bytes), hash.short()),
            // Blobs can be deleted from the store while the journal still names them.
            None => format!("{:>9}        {:<12}", "gone", hash.short()),
        },
    };
    let mut out = String::new();
    for (call, (keyed, asked)) in calls.iter().zip(&names) {
        let who = format!("{keyed:<key$}  {asked:<agent$}  {:<driver$}", clean(&call.driver));
        let line = format!("{who}{}  →{}", blob(call.prompt()), blob(call.output()));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Renders which text went to which vendor: a paragraph per vendor, with totals. `blob_bytes` returns the length of a blob.
pub fn sent(calls: &[Call<'_>], bytes: &dyn Fn(&Hash) -> Option<u64>, screen: &Screen) -> String {
    let mut out = String::new();
    let key = calls.iter().map(|call| escaped(call.key.as_str()).len()).max().unwrap_or_default();
    let by = calls.iter().map(|call| by(call).len()).max().unwrap_or_default();
    for (sent, calls) in by_vendor(calls, bytes) {
        let gap = if out.is_empty() { "" } else { "\n" };
        let vendor = match sent.vendor.as_str() {
            // Text played from a script stayed on this machine.
            _ if sent.is_script => "nobody: played from a script".to_string(),
            "" => "unknown".to_string(),
            vendor => format!("to {}", clean(vendor)),
        };
        let _ = writeln!(out, "{gap}{}", screen.paint(Style::Bold, &vendor));
        for call in calls {
            let text = match call.prompt().map(|hash| (hash, bytes(hash))) {
                None => format!("{:>15}", "nothing"),
                Some((hash, None)) => format!("{:>15}  {}", "gone", hash.short()),
                Some((hash, Some(bytes))) => {
                    format!("{:>9} bytes  {}", words::thousands(bytes), hash.short())
                }
            };
            let used = format!("{} tokens", words::thousands(call.usage().weighted()));
            let keyed = escaped(call.key.as_str());
            let _ = writeln!(out, "  {keyed:<key$}  {:<by$}  {text:<29}  {used:>14}", self::by(call));
        }
        let about = if sent.usage.estimated { "about " } else { "" };
        // The list price is mentioned, but it is not part of what was paid.
        let notional = sent.usage.cost.filter(|_| sent.usage.notional).unwrap_or_default();
        let money = words::money(sent.usage.cost.unwrap_or_default(), notional);
        let money = money.map(|money| format!(", {money}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "  {}, {} bytes, {about}{} tokens{money}",
            words::count(sent.prompts, "text"),
            words::thousands(sent.bytes),
            words::thousands(sent.usage.weighted()),
        );
    }
    out
}

/// Names an agent with its model: `claude-code (opus)`.
fn by(call: &Call<'_>) -> String {
    let agent = clean(call.task.agent.as_str());
    match &call.model {
        Some(model) => format!("{agent} ({})", clean(model)),
        None => agent,
    }
}

/// Renders the decisions that wait for the user.
pub fn decisions<'a>(waiting: impl IntoIterator<Item = &'a RunView>, screen: &Screen) -> String {
    let mut out = String::new();
    for view in waiting {
        let run = run_of(view);
        for decision in view.waiting() {
            let name = screen.paint(Style::Bold, &format!("{run}.{}", escaped(decision.id.as_str())));
            let _ = writeln!(out, "{name} for {}", clean(&decision.owner));
            let _ = writeln!(out, "{}", screen.wrap(2, &decision.question));
            for choice in &decision.choices {
                let _ = writeln!(out, "  {:<8} {}", choice.key.as_str(), clean(&choice.label));
            }
        }
    }
    out
}

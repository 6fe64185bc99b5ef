//! Renders the report for the terminal: one paragraph per topic, and at the end whether a review can run.

use std::fmt::Write;

use tribunal_report::{Screen, Style, escaped};

use super::document::{AgentRow, ClientRow, Report, Trouble};
use crate::probe::State;

/// The column at which the details of an item start.
const INDENT: usize = 6;

pub(super) fn draw(report: &Report, screen: &Screen) -> String {
    let mut page = Page { out: String::new(), screen };
    page.heading("clients");
    report.clients.iter().for_each(|client| page.client(client));
    for other in &report.others {
        let text = format!("{}: {} is there, and has no driver yet", other.id, other.path);
        page.item(Mark::Nothing, &text);
    }
    page.heading("agents");
    if report.agents.is_empty() {
        page.item(Mark::Bad, "none");
    }
    report.agents.iter().for_each(|agent| page.agent(agent));
    page.heading("here");
    page.place(report);
    // Notes stand between the facts and the problems: they explain the former and need no action.
    for note in &report.notes {
        let wrapped = screen.wrap(4, &escaped(note));
        let _ = writeln!(page.out, "\n[i] {}", wrapped.trim_start());
    }
    page.troubles("worth knowing", Style::Warn, &report.warnings);
    page.troubles("what keeps a review from running", Style::Bad, &report.faults);
    let (style, closing) = match report.faults.len() {
        0 => (Style::Good, "a review can run here".to_string()),
        1 => (Style::Bad, "a review cannot run here yet: 1 thing is missing".to_string()),
        many => (Style::Bad, format!("a review cannot run here yet: {many} things are missing")),
    };
    // The verdict comes last, where a terminal leaves the reader.
    let _ = writeln!(page.out, "\n{}", screen.paint(style, &screen.wrap(0, &closing)));
    page.out
}

#[derive(Clone, Copy)]
enum Mark {
    Good,
    Doubtful,
    Bad,
    Nothing,
}

struct Page<'a> {
    out: String,
    screen: &'a Screen,
}

impl Page<'_> {
    fn heading(&mut self, text: &str) {
        let gap = if self.out.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.out, "{gap}{}", self.screen.paint(Style::Bold, text));
    }

    /// Adds a line with a mark before it; text that does not fit continues below, aligned with the first line.
    fn item(&mut self, mark: Mark, text: &str) {
        let (style, sign) = match mark {
            Mark::Good => (Style::Good, "✓"),
            Mark::Doubtful => (Style::Warn, "?"),
            Mark::Bad => (Style::Bad, "✗"),
            Mark::Nothing => (Style::Plain, "·"),
        };
        let wrapped = self.screen.wrap(4, &escaped(text));
        let _ = writeln!(self.out, "  {} {}", self.screen.paint(style, sign), wrapped.trim_start());
    }

    fn detail(&mut self, style: Style, text: &str) {
        let wrapped = self.screen.wrap(INDENT, &escaped(text));
        let _ = writeln!(self.out, "{}", self.screen.paint(style, &wrapped));
    }

    fn client(&mut self, client: &ClientRow) {
        let mut head = format!("{}: {}", client.id, client.state);
        if let Some(version) = &client.version {
            let _ = write!(head, ", version {version}");
        }
        if client.state == State::TooOld {
            let _ = write!(head, ", at least {} is needed", client.minimum);
        }
        if let Some(signed_in) = &client.signed_in {
            let pays = if signed_in.subscription { "a plan pays" } else { "paid by the token" };
            let _ = write!(head, ", signed in by {} ({pays})", signed_in.how);
        }
        let mark = match &client.state {
            State::Ready => Mark::Good,
            state if state.can_work() => Mark::Doubtful,
            // A client that no agent uses is not missed.
            State::NotThere if client.agents.is_empty() => Mark::Nothing,
            _ => Mark::Bad,
        };
        self.item(mark, &head);
        if let Some(path) = &client.path {
            self.detail(Style::Plain, path);
        } else if client.program.contains('/') {
            // Without a path to show, the name that was searched for is the only clue to a typing mistake.
            self.detail(Style::Plain, &format!("looked for: {}", client.program));
        }
        if let Some(why) = &client.why {
            self.detail(Style::Plain, why);
        }
        if let Some(mend) = &client.mend {
            let to = if client.state == State::NotThere { "to install it" } else { "to mend it" };
            self.detail(Style::Plain, &format!("{to}: {mend}"));
        }
        // What a client could do is of no interest while it cannot be started.
        if client.state.can_work() {
            let can: Vec<&str> = client.can.iter().map(|can| can.what).collect();
            self.detail(Style::Dim, &format!("can: {}", can.join(", ")));
        }
    }

    fn agent(&mut self, agent: &AgentRow) {
        let mut does = Vec::new();
        if !agent.takes.is_empty() {
            does.push(format!("takes {}", agent.takes.join(" and ")));
        }
        if !agent.stands_by.is_empty() {
            does.push(format!("stands by for {}", agent.stands_by.join(" and ")));
        }
        // Such an agent is listed all the same: the user has set it, and may not know that its jobs exclude it.
        if does.is_empty() {
            does.push("is never asked".to_string());
        }
        let AgentRow { name, driver, provider, runs, state, .. } = agent;
        let head = format!("{name}: {state} ({driver} {runs}, of {provider}); {}", does.join(", "));
        let mark = match (agent.can_work, state) {
            (true, State::Ready) => Mark::Good,
            (true, _) => Mark::Doubtful,
            (false, _) => Mark::Bad,
        };
        self.item(mark, &head);
    }

    fn place(&mut self, report: &Report) {
        let project = &report.project;
        self.item(Mark::Good, &format!("project {}", project.root));
        let bmad = match (project.bmad, project.personas) {
            (true, 0) => "BMAD: its settings are here; parties have the built-in personas".to_string(),
            (true, personas) => format!("BMAD: its settings are here, and {personas} personas of its own"),
            (false, _) => "no BMAD here: trackers and metrics go to .tribunal".to_string(),
        };
        self.item(if project.bmad { Mark::Good } else { Mark::Nothing }, &bmad);
        match &report.git {
            Some(version) => self.item(Mark::Good, &format!("git {version}")),
            None => self.item(Mark::Doubtful, "git is not there: files can be reviewed, changes cannot"),
        }
    }

    fn troubles(&mut self, heading: &str, style: Style, troubles: &[Trouble]) {
        if troubles.is_empty() {
            return;
        }
        self.heading(heading);
        for trouble in troubles {
            let wrapped = self.screen.wrap(4, &escaped(&trouble.what));
            let sign = if style == Style::Bad { "[!]" } else { "[W]" };
            let sign = self.screen.paint(style, sign);
            let _ = writeln!(self.out, "{sign} {}", wrapped.trim_start());
            // The steps are numbered because they are meant to be tried in this order.
            for (index, step) in trouble.mend.iter().enumerate() {
                let _ = writeln!(
                    self.out,
                    "{}",
                    self.screen.wrap(4, &escaped(&format!("{}. {step}", index + 1)))
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::document::{ProjectRow, SCHEMA},
        *,
    };

    #[test]
    fn a_narrow_screen_is_respected_and_nothing_is_cut() {
        let trouble = || Trouble {
            what: "agent `claude-code`: not signed in, and that is a long story for so narrow a screen"
                .into(),
            mend: vec!["type claude auth login and come back when it is done".into()],
        };
        let report = Report {
            schema: SCHEMA,
            ready: false,
            faults: vec![trouble()],
            warnings: vec![trouble()],
            notes: vec!["no agent is set: claude-code takes part, the first that is ready".into()],
            agents: Vec::new(),
            clients: Vec::new(),
            others: Vec::new(),
            git: None,
            project: ProjectRow { root: "/srv/p".into(), bmad: false, personas: 0 },
        };
        let drawn = draw(&report, &Screen { width: Some(40), ..Screen::default() });
        assert!(drawn.lines().all(|line| line.chars().count() < 40), "{drawn}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in [&report.faults[0].what, &report.faults[0].mend[0], &report.notes[0]] {
            assert!(words(&drawn).contains(&words(text)), "{drawn}");
        }
    }
}

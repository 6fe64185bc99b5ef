//! Renders the report for the terminal: one paragraph per topic, and at the end whether a review can run.

use std::fmt::Write;

use tribunal_report::{Screen, TextStyle, escape_line};

use super::document::{DoctorAgentRow, DoctorClientRow, DoctorProblem, DoctorReport, DoctorWorkspaceAdvice};
use crate::{clients::client_probe::ClientState, messages::user_errors::format_steps};

/// The column at which the details of an item start.
const DETAIL_INDENT: usize = 6;

pub(super) fn render_report(report: &DoctorReport, screen: &Screen) -> String {
    let mut page = ReportPage { rendered: String::new(), screen };
    page.add_heading("clients");
    report.clients.iter().for_each(|client| page.add_client(client));
    for other_client in &report.others {
        let item_text = format!("{}: found at {}, but not supported yet", other_client.id, other_client.path);
        page.add_item(ItemMark::Neutral, &item_text);
    }
    page.add_heading("agents");
    if report.agents.is_empty() {
        page.add_item(ItemMark::Bad, "none");
    }
    report.agents.iter().for_each(|agent| page.add_agent(agent));
    page.add_heading("environment");
    page.add_project(report);
    if let Some(advice) = &report.workspace {
        page.add_workspace_advice(advice);
    }
    // Notes stand between the facts and the problems: they explain the former and need no action.
    for note in &report.notes {
        let wrapped = screen.wrap_text(6, &escape_line(note));
        let _ = writeln!(page.rendered, "\nnote: {}", wrapped.trim_start());
    }
    page.add_problems("warnings", TextStyle::Warning, &report.warnings);
    page.add_problems("errors", TextStyle::Failure, &report.faults);
    let (style, closing) = match report.faults.len() {
        0 => (TextStyle::Success, "ready: a review can run here".to_string()),
        1 => (TextStyle::Failure, "not ready: fix the error above first".to_string()),
        fault_count => (TextStyle::Failure, format!("not ready: fix the {fault_count} errors above first")),
    };
    // The verdict comes last, where a terminal leaves the reader.
    let _ = writeln!(page.rendered, "\n{}", screen.paint(style, &screen.wrap_text(0, &closing)));
    page.rendered
}

/// The column at which the steps below a problem start, as below an error of any other command.
const STEP_INDENT: usize = 2;

#[derive(Clone, Copy)]
enum ItemMark {
    Good,
    Doubtful,
    Bad,
    Neutral,
}

struct ReportPage<'a> {
    rendered: String,
    screen: &'a Screen,
}

impl ReportPage<'_> {
    fn add_heading(&mut self, text: &str) {
        let gap = if self.rendered.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.rendered, "{gap}{}", self.screen.paint(TextStyle::Bold, text));
    }

    /// Adds a line with a mark before it; text that does not fit continues below, aligned with the first line.
    fn add_item(&mut self, mark: ItemMark, text: &str) {
        let (style, sign) = match mark {
            ItemMark::Good => (TextStyle::Success, "✓"),
            ItemMark::Doubtful => (TextStyle::Warning, "?"),
            ItemMark::Bad => (TextStyle::Failure, "✗"),
            ItemMark::Neutral => (TextStyle::Plain, "·"),
        };
        let wrapped = self.screen.wrap_text(4, &escape_line(text));
        let _ = writeln!(self.rendered, "  {} {}", self.screen.paint(style, sign), wrapped.trim_start());
    }

    fn add_detail(&mut self, style: TextStyle, text: &str) {
        let wrapped = self.screen.wrap_text(DETAIL_INDENT, &escape_line(text));
        let _ = writeln!(self.rendered, "{}", self.screen.paint(style, &wrapped));
    }

    fn add_client(&mut self, client_row: &DoctorClientRow) {
        let mut headline = format!("{}: {}", client_row.id, client_row.state);
        if let Some(version) = &client_row.version {
            let _ = write!(headline, ", version {version}");
        }
        if client_row.state == ClientState::TooOld {
            let _ = write!(headline, ", requires at least {}", client_row.minimum);
        }
        if let Some(signed_in) = &client_row.signed_in {
            let payment = if signed_in.subscription { "subscription" } else { "pay per token" };
            let _ = write!(headline, ", signed in with {} ({payment})", signed_in.how);
        }
        let mark = match &client_row.state {
            ClientState::Ready => ItemMark::Good,
            state if state.can_work() => ItemMark::Doubtful,
            // A client that no agent uses is not missed.
            state if state.is_missing() && client_row.agents.is_empty() => ItemMark::Neutral,
            _ => ItemMark::Bad,
        };
        self.add_item(mark, &headline);
        if let Some(program_path) = &client_row.path {
            self.add_detail(TextStyle::Plain, program_path);
        } else if client_row.program.contains('/') {
            // Without a path to show, the name that was searched for is the only clue to a typing mistake.
            self.add_detail(TextStyle::Plain, &format!("looked for: {}", client_row.program));
        }
        if let Some(reason) = &client_row.why {
            self.add_detail(TextStyle::Plain, reason);
        }
        if let Some(remedy) = &client_row.mend {
            let purpose = if client_row.state.is_missing() { "to install it" } else { "to fix it" };
            self.add_detail(TextStyle::Plain, &format!("{purpose}: {remedy}"));
        }
        // What a client could do is of no interest while it cannot be started.
        if client_row.state.can_work() {
            let abilities: Vec<&str> = client_row.can.iter().map(|ability| ability.what).collect();
            self.add_detail(TextStyle::Dim, &format!("can: {}", abilities.join(", ")));
        }
    }

    fn add_agent(&mut self, agent_row: &DoctorAgentRow) {
        let mut duties = Vec::new();
        if !agent_row.takes.is_empty() {
            duties.push(format!("used for {}", agent_row.takes.join(" and ")));
        }
        if !agent_row.stands_by.is_empty() {
            duties.push(format!("fallback for {}", agent_row.stands_by.join(" and ")));
        }
        // Such an agent is listed all the same: the user has set it, and may not know that its jobs exclude it.
        if duties.is_empty() {
            duties.push("never used".to_string());
        }
        let DoctorAgentRow { name: agent_name, driver, provider, runs, state, .. } = agent_row;
        let headline = format!("{agent_name}: {state} ({driver} {runs}, provider {provider}); {}", duties.join(", "));
        let mark = match (agent_row.can_work, state) {
            (true, ClientState::Ready) => ItemMark::Good,
            (true, _) => ItemMark::Doubtful,
            (false, _) => ItemMark::Bad,
        };
        self.add_item(mark, &headline);
    }

    fn add_project(&mut self, report: &DoctorReport) {
        let project = &report.project;
        self.add_item(ItemMark::Good, &format!("project {}", project.root));
        let bmad_summary = match (project.bmad, project.personas) {
            (true, 0) => "BMAD: found; parties use the built-in personas".to_string(),
            (true, personas) => format!("BMAD: found, with {personas} personas of its own"),
            (false, _) => "BMAD: not found; trackers and metrics go to .tribunal".to_string(),
        };
        self.add_item(if project.bmad { ItemMark::Good } else { ItemMark::Neutral }, &bmad_summary);
        match &report.git {
            Some(version) => self.add_item(ItemMark::Good, &format!("git {version}")),
            None => self.add_item(ItemMark::Doubtful, "git: not found; files can be reviewed, changes cannot"),
        }
        let sandbox_mark = if report.sandbox.enforced { ItemMark::Good } else { ItemMark::Doubtful };
        self.add_item(sandbox_mark, &report.sandbox.description);
        for gap in &report.sandbox.gaps {
            self.add_detail(TextStyle::Dim, &format!("not prevented by this kernel: {gap}"));
        }
    }

    fn add_workspace_advice(&mut self, advice: &DoctorWorkspaceAdvice) {
        self.add_heading("workspaces for development");
        for step in &advice.setup {
            self.add_item(
                ItemMark::Neutral,
                &format!("{} found; to set up a fresh clone: {}", step.lock_file, step.command),
            );
            if let Some(note) = step.note {
                self.add_detail(TextStyle::Dim, note);
            }
        }
        for seed in &advice.seeds {
            let path = &seed.path;
            self.add_item(ItemMark::Neutral, &format!("{path} is ignored by git, so a fresh clone lacks it"));
            if seed.secret {
                let warning = "add it to workspace.seed only if the checks need it: agents can read it there";
                self.add_detail(TextStyle::Warning, warning);
            }
        }
        if !advice.settings.is_empty() {
            self.add_detail(TextStyle::Plain, "to use this, add to tribunal.yaml:");
        }
        for line in &advice.settings {
            // These lines are to be pasted, so they are not wrapped.
            let _ = writeln!(self.rendered, "{:DETAIL_INDENT$}{}", "", escape_line(line));
        }
    }

    fn add_problems(&mut self, section_title: &str, style: TextStyle, problems: &[DoctorProblem]) {
        if problems.is_empty() {
            return;
        }
        self.add_heading(section_title);
        for problem in problems {
            let prefix = if style == TextStyle::Failure { "error:" } else { "warning:" };
            let wrapped = self.screen.wrap_text(prefix.len() + 1, &escape_line(&problem.what));
            let prefix = self.screen.paint(style, prefix);
            let _ = writeln!(self.rendered, "{prefix} {}", wrapped.trim_start());
            for step_line in format_steps(problem.mend.iter()) {
                let _ = writeln!(self.rendered, "{}", self.screen.wrap_text(STEP_INDENT, &step_line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::document::{DOCTOR_SCHEMA, DoctorProjectRow, DoctorSandboxRow},
        *,
    };
    use crate::messages::user_errors::UserError;

    #[test]
    fn a_narrow_screen_is_respected_and_nothing_is_cut() {
        let new_problem = || DoctorProblem {
            what: "agent `claude-code`: not signed in, and that is a long story for so narrow a screen".into(),
            mend: vec!["type claude auth login and come back when it is done".into()],
        };
        let report = DoctorReport {
            schema: DOCTOR_SCHEMA,
            ready: false,
            faults: vec![new_problem()],
            warnings: vec![new_problem()],
            notes: vec!["no agent is set: claude-code takes part, the first that is ready".into()],
            agents: Vec::new(),
            clients: Vec::new(),
            others: Vec::new(),
            git: None,
            sandbox: DoctorSandboxRow { enforced: true, description: "sandboxed".into(), gaps: Vec::new() },
            project: DoctorProjectRow { root: "/srv/p".into(), bmad: false, personas: 0 },
            workspace: None,
        };
        let rendered = render_report(&report, &Screen { max_columns: Some(40), ..Screen::default() });
        assert!(rendered.lines().all(|line| line.chars().count() < 40), "{rendered}");
        let join_words = |phrase: &str| phrase.split_whitespace().collect::<Vec<_>>().join(" ");
        for phrase in [&report.faults[0].what, &report.faults[0].mend[0], &report.notes[0]] {
            assert!(join_words(&rendered).contains(&join_words(phrase)), "{rendered}");
        }
    }

    #[test]
    fn steps_look_like_those_of_an_error() {
        let screen = Screen::default();
        let mut page = ReportPage { rendered: String::new(), screen: &screen };
        let one_step = DoctorProblem { what: "not signed in".into(), mend: vec!["codex login".into()] };
        let two_steps = DoctorProblem { what: "no git".into(), mend: vec!["install it".into(), "log in again".into()] };
        page.add_problems("errors", TextStyle::Failure, &[one_step, two_steps]);
        let error_texts = [
            UserError::usage("not signed in").with_step("codex login").to_string(),
            UserError::usage("no git").with_step("install it").with_step("log in again").to_string(),
        ];
        assert_eq!(page.rendered, format!("errors\n{}", error_texts.concat()));
        assert!(page.rendered.contains("  help: codex login\n") && page.rendered.contains("  2. log in again\n"));
    }
}

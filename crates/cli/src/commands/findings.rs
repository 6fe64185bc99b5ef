//! `tribunal findings [RUN]`: prints the findings for the terminal, for programs, or in one of the formats for
//! handing them on.

use std::io::{Write, stdout};

use tribunal_report::{
    FindingsExport, RulingIndex, escape_line,
    tables::{self, RunStanding, is_driven_by_session},
};
use tribunal_runner::Runner;
use tribunal_workflows::{
    findings::finding::{FINDING_SCHEMA, Finding},
    runs::view::RunView,
};

use crate::{
    build_info,
    context::CommandContext,
    messages::{
        json_documents::{self, FindingsDocument},
        user_errors::UserError,
    },
};

#[derive(Debug, clap::Args)]
pub(crate) struct FindingsArguments {
    /// Run to show (default: the last one)
    run: Option<String>,
    /// Show only findings with these statuses, separated by commas
    #[arg(
        long,
        value_name = "STATUS",
        value_delimiter = ',',
        value_parser = ["open", "assigned", "fixed", "blocked", "dismissed", "deferred"]
    )]
    status: Vec<String>,
    #[command(flatten)]
    form: ExportFlags,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct ExportFlags {
    /// Print as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print as a pull request comment: Markdown, at most 65,000 characters
    #[arg(long, conflicts_with = "json")]
    pr_comment: bool,
    /// Print as SARIF 2.1.0, for code scanners and editors
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
    /// Print as JUnit XML, for GitLab, Jenkins and other CI systems: one failed test per unresolved finding
    #[arg(long, conflicts_with = "json")]
    junit: bool,
    /// Print as GitHub workflow commands, which annotate a pull request; without --status, only what is open, assigned,
    /// blocked or deferred
    #[arg(long, conflicts_with = "json")]
    github: bool,
}

pub(crate) fn run(arguments: &FindingsArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let (store, run_id) = context.find_requested_work(&project, arguments.run.as_deref())?;
    let journal_entries = store.read_entries(&run_id, 0)?;
    let run_view = RunView::from_entries(&journal_entries);
    let wanted_statuses = &arguments.status;
    let export_flags = &arguments.form;
    let is_wanted = |finding: &&Finding| match wanted_statuses.as_slice() {
        // An annotation is a task for its reader, so what is settled gets none.
        [] if export_flags.github => finding.status.is_unresolved(),
        // Everything else shows all findings, dismissed ones included: the filter is the user's choice.
        [] => true,
        statuses => statuses.iter().any(|status_name| status_name == finding.status.as_str()),
    };
    let findings: Vec<&Finding> = run_view.all_findings().filter(is_wanted).collect();
    let rulings = RulingIndex::from_entries(&journal_entries);
    let run_is_live = Runner::is_live(&project, &run_id);
    // The export is built only if one of the formats needs it.
    let build_export = || FindingsExport {
        run_standing: RunStanding { run_view: &run_view, is_live: run_is_live },
        rulings: &rulings,
        findings: findings.clone(),
    };
    // clap makes sure that at most one of the formats is given, and none of them with `--json`.
    if export_flags.markdown {
        write!(stdout(), "{}", build_export().to_markdown())?;
    } else if export_flags.pr_comment {
        write!(stdout(), "{}", build_export().to_comment())?;
    } else if export_flags.sarif {
        write!(stdout(), "{}", build_export().to_sarif(build_info::VERSION))?;
    } else if export_flags.junit {
        write!(stdout(), "{}", build_export().to_junit())?;
    } else if export_flags.github {
        write!(stdout(), "{}", build_export().to_workflow_commands())?;
    } else if context.wants_json {
        json_documents::print_document(&FindingsDocument {
            schema: "tribunal.findings/1",
            run: Some(run_id),
            finding_schema: FINDING_SCHEMA,
            findings: findings.into_iter().cloned().collect(),
        })?;
    } else if is_driven_by_session(&run_view) {
        let log_command = format!("{} log {run_id}", context.program_name());
        context.print_answer(&escape_line(&format!("loop {run_id} has no findings; see its log: `{log_command}`")))?;
    } else if findings.is_empty() {
        writeln!(stdout(), "no matching findings in run {}", escape_line(run_id.as_str()))?;
    } else {
        write!(stdout(), "{}", tables::render_findings(findings, &rulings, &context.answer_screen))?;
    }
    Ok(0)
}

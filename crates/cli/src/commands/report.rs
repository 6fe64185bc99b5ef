//! `tribunal report [RUN]`: answers whether the result of a run can be merged, story by story.

use std::io::{Write, stdout};

use crate::{
    context::CommandContext,
    messages::{json_documents, user_errors::UserError},
    runs::run_reports::read_report,
};

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArguments {
    /// Run to report on (default: the last sprint or story, else the last run)
    run: Option<String>,
    /// Print as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

pub(crate) fn run(arguments: &ReportArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let (store, run_id) = context.find_reported_run(&project, arguments.run.as_deref())?;
    let report = read_report(&store, &project, &run_id, context.program_name())?;
    if context.wants_json {
        json_documents::print_document(&report)?;
    } else if arguments.markdown {
        write!(stdout(), "{}", report.to_markdown())?;
    } else {
        write!(stdout(), "{}", report.to_text(&context.answer_screen))?;
    }
    Ok(report.head.exit_code)
}

//! `tribunal trust`: lets the commands of this project run here.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use tribunal_bmad::hooks;
use tribunal_report::escape_line;
use tribunal_runner::{Project, masking::Masker};
use tribunal_workflows::runs::view::RunPhase;

use super::{loops::loop_trust_items, runs};
use crate::{
    context::CommandContext,
    messages::{
        json_documents::{self, TrustDocument, TrustItemRow},
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    settings::{SettingSources, all_project_items, gather_settings},
    terminal::wrapped_output::{wrapped_stderr, wrapped_stdout},
    trust::{TrustStore, ask_user, secret_error, trust_item::TrustItem},
};

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArguments {
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// List the commands and whether they are trusted
    #[arg(long, conflicts_with_all = ["yes", "forget"])]
    pub(super) list: bool,
    /// Revoke trust in all commands of this project
    #[arg(long, conflicts_with = "yes")]
    forget: bool,
    /// Include the hooks in the front matter of this step or agent file
    #[arg(long, value_name = "FILE", conflicts_with = "forget")]
    step: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &TrustArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let project_root = project.root();
    let mut trust_store = TrustStore::open_default(context)?;
    if arguments.forget {
        let forgotten_count = trust_store.forget_project(project_root)?;
        return print_report(
            context,
            &project,
            &[],
            &trust_store,
            &format!("{forgotten_count} commands are no longer trusted here"),
        );
    }
    let trust_items = collect_trust_items(context, &project, &arguments.step)?;
    let untrusted: Vec<&TrustItem> =
        trust_items.iter().filter(|trust_item| !trust_store.is_trusted(project_root, trust_item)).collect();
    if arguments.list || untrusted.is_empty() {
        let closing_line = match (trust_items.len(), untrusted.len()) {
            (0, _) => "this project has no commands that need trust".to_string(),
            (_, 0) => "all commands are trusted".to_string(),
            (_, untrusted_count) => {
                format!("{untrusted_count} not trusted; to allow them: `{} trust`", context.answer_screen.program_name)
            }
        };
        return print_report(context, &project, &trust_items, &trust_store, &closing_line);
    }
    let masker = context.secret_masker();
    // A command with a secret in it cannot be shown in full, so it cannot be trusted.
    let (with_secrets, trustable): (Vec<&TrustItem>, Vec<&TrustItem>) =
        untrusted.into_iter().partition(|trust_item| trust_item.hides_part(&masker));
    if !trustable.is_empty() && !arguments.yes {
        // An answer that comes through a pipe is not read: it may be meant for another program.
        if !context.can_ask() {
            return Err(unasked_error(context, &trustable, &masker));
        }
        if !ask_user(&trustable, &masker)? {
            writeln!(wrapped_stderr(), "note: nothing was trusted")?;
            return Ok(EXIT_NEGATIVE);
        }
    }
    if !trustable.is_empty() {
        trust_store.add_items(project_root, trustable.iter().copied())?;
    }
    let trusted_count = trustable.len();
    // The others are trusted first, so that one bad command does not block them.
    if let Some(secret_item) = with_secrets.first() {
        let user_error = secret_error(secret_item, &masker);
        return Err(match trusted_count {
            0 => user_error,
            trusted_count => user_error.with_step(format!(
                "the others are trusted now ({trusted_count}); list them: `{} trust --list`",
                context.answer_screen.program_name
            )),
        });
    }
    print_report(
        context,
        &project,
        &trust_items,
        &trust_store,
        &format!("{trusted_count} newly trusted; you are asked again when a command changes"),
    )
}

/// The error where no user can be asked and `--yes` was not typed.
fn unasked_error(context: &CommandContext, trustable: &[&TrustItem], masker: &Masker) -> UserError {
    let item_lines: String =
        trustable.iter().map(|trust_item| format!("  {}\n", trust_item.describe_masked(masker))).collect();
    UserError::usage("there is no terminal to ask you on")
        .with_reason(format!("{item_lines}Nothing was trusted."))
        .with_step(format!("to trust all of this: `{} trust --yes`", context.answer_screen.program_name))
}

/// Collects what the project's files define, what resumable runs were started with, and the hooks of these files.
fn collect_trust_items(
    context: &CommandContext,
    project: &Project,
    step_files: &[PathBuf],
) -> Result<Vec<TrustItem>, UserError> {
    let mut all_found = all_project_items(&gather_settings(project.root(), &SettingSources::from_environment())?);
    all_found.extend(loop_trust_items(project, context));
    if let Some(store) = context.open_journal(project)? {
        for (run_view, _) in runs::list_runs(&store, project)? {
            // Finished runs never start anything again.
            if let Some(settings) =
                run_view.settings.as_ref().filter(|_| !matches!(run_view.phase, RunPhase::Finished(_)))
            {
                all_found.extend(TrustItem::from_settings(settings));
            }
        }
    }
    for step_file in step_files {
        all_found.extend(read_step_hooks(step_file)?);
    }
    // Several agents may share a command; it is shown and trusted once.
    let mut distinct_items: Vec<TrustItem> = Vec::new();
    for trust_item in all_found {
        if !distinct_items.contains(&trust_item) {
            distinct_items.push(trust_item);
        }
    }
    Ok(distinct_items)
}

fn read_step_hooks(step_file: &Path) -> Result<Vec<TrustItem>, UserError> {
    let step_name = step_file.display().to_string();
    let step_text = fs::read_to_string(step_file).map_err(|cause| {
        UserError::usage(format!("{} cannot be read: {cause}", escape_line(&step_name)))
            .with_reason("Nothing was trusted.")
            .with_step("pass a file whose front matter has `hooks:`")
    })?;
    let hooks = hooks::read_hooks(&step_name, &step_text);
    // Broken hooks do not run, so they are reported and left out.
    for problem in &hooks.problems {
        writeln!(wrapped_stderr(), "warning: {}", escape_line(&problem.to_string()))?;
    }
    Ok(TrustItem::from_hooks(&step_name, &hooks))
}

fn print_report(
    context: &CommandContext,
    project: &Project,
    trust_items: &[TrustItem],
    trust_store: &TrustStore,
    closing_line: &str,
) -> Result<u8, UserError> {
    let project_root = project.root();
    let masker = context.secret_masker();
    if context.wants_json {
        let rows = trust_items.iter().map(|trust_item| TrustItemRow {
            kind: trust_item.kind_name(),
            agent: trust_item.owner_name().map(str::to_string),
            command: masker.mask(&trust_item.command_text()).into_owned(),
            trusted: trust_store.is_trusted(project_root, trust_item),
        });
        let root_text = project_root.display().to_string();
        json_documents::print_document(&TrustDocument {
            schema: "tribunal.trust/1",
            project: root_text,
            items: rows.collect(),
        })?;
        return Ok(0);
    }
    let mut output = wrapped_stdout();
    for trust_item in trust_items {
        let trust_label = if trust_store.is_trusted(project_root, trust_item) { "trusted" } else { "not trusted" };
        // Commands are never cut, however narrow the screen is: a hidden part cannot be judged.
        writeln!(output, "{trust_label:<12} {}", trust_item.describe_masked(&masker))?;
    }
    // Trust goes by content, so it outlives the settings; that is worth a remark.
    let stale_count = trust_store.count_trusted(project_root).saturating_sub(
        trust_items.iter().filter(|trust_item| trust_store.is_trusted(project_root, trust_item)).count(),
    );
    if !trust_items.is_empty() && stale_count > 0 {
        writeln!(output, "{stale_count} more are trusted, but no longer in the settings")?;
    }
    writeln!(output, "{closing_line}")?;
    Ok(0)
}

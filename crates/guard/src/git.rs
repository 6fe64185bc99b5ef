//! Recognises git commands whose effect cannot be undone.

use alloc::{
    format,
    string::{String, ToString},
};

use crate::{
    invocation::{CommandOptions, ProgramInvocation},
    shell::ShellWord,
};

/// Describes a harmful command: what it is, why it is refused, and what to do instead.
pub(crate) struct HarmDescription {
    pub action: String,
    pub explanation: &'static str,
    pub alternative: &'static str,
}

impl HarmDescription {
    /// Describes a harmful git command by its subcommand and options.
    fn for_git(git_command: &str, explanation: &'static str, alternative: &'static str) -> HarmDescription {
        HarmDescription { action: format!("`git {git_command}`"), explanation, alternative }
    }
}

/// Splits the arguments of git into the subcommand and its arguments, after git's own options.
pub(crate) fn split_subcommand(args: &[ShellWord]) -> Option<(String, &[ShellWord])> {
    let mut remaining_words = args;
    loop {
        let (first_word, following_words) = remaining_words.split_first()?;
        let word_text = first_word.0.as_str();
        remaining_words = match word_text {
            // These options of git take a value, which must not be mistaken for the subcommand.
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" => following_words.get(1..)?,
            _ if word_text.starts_with('-') => following_words,
            _ => return Some((first_word.to_plain_text(), following_words)),
        };
    }
}

/// The directory that `-C` names.
pub(crate) fn find_directory_option(args: &[ShellWord]) -> Option<&ShellWord> {
    let option_index =
        args.iter().take_while(|argument| argument.0.starts_with('-')).position(|argument| argument.0 == "-C")?;
    args.get(option_index + 1)
}

const LOSES_UNCOMMITTED: &str = "it discards uncommitted changes, which cannot be restored";
const RESTORE_SINGLE_FILES: &str = "Revert single files with `git restore FILE`, or keep the changes with `git stash`";
const LOSES_COMMITS: &str = "it discards commits that others may need";
const LEAVE_TO_USER: &str = "Leave it to the user";

/// Describes the harm of a git command; `None` means that no known harm comes of it.
pub(crate) fn describe_git_harm(invocation: &ProgramInvocation<'_>) -> Option<HarmDescription> {
    let (subcommand_name, arguments) = split_subcommand(invocation.args)?;
    let options = CommandOptions::parse(arguments);
    let describe = |git_command: &str, explanation, alternative| {
        Some(HarmDescription::for_git(git_command, explanation, alternative))
    };
    match subcommand_name.as_str() {
        "reset" if options.has_any(&[], &["hard"]) => describe("reset --hard", LOSES_UNCOMMITTED, RESTORE_SINGLE_FILES),
        "clean" if options.has_any(&['f'], &["force"]) && !options.has_any(&['n'], &["dry-run"]) => {
            let explanation = "it removes untracked files, which cannot be restored";
            describe(
                "clean --force",
                explanation,
                "Check what it would remove with `git clean -n`, then remove single files by name",
            )
        }
        "push" => describe_push_harm(&options),
        "branch" => describe_branch_harm(&options),
        "stash" => describe_stash_harm(arguments),
        "checkout" if options.has_any(&['f'], &["force"]) => {
            describe("checkout --force", LOSES_UNCOMMITTED, RESTORE_SINGLE_FILES)
        }
        "checkout" if names_everything(&options) => describe("checkout -- .", LOSES_UNCOMMITTED, RESTORE_SINGLE_FILES),
        "restore" if names_everything(&options) => {
            let is_index_only = options.has_any(&['S'], &["staged"]) && !options.has_any(&['W'], &["worktree"]);
            if is_index_only { None } else { describe("restore .", LOSES_UNCOMMITTED, RESTORE_SINGLE_FILES) }
        }
        "switch" if options.has_any(&['f'], &["force", "discard-changes"]) => {
            describe("switch --discard-changes", LOSES_UNCOMMITTED, RESTORE_SINGLE_FILES)
        }
        "rm" if names_everything(&options) && !options.has_any(&[], &["cached"]) => {
            describe("rm .", "it removes the whole project", "Remove single files by name")
        }
        "filter-branch" | "filter-repo" => describe(&subcommand_name, "it rewrites the whole history", LEAVE_TO_USER),
        "reflog" if ["expire", "delete"].contains(&options.operand_texts().first().map_or("", String::as_str)) => {
            describe("reflog expire", "it removes the way to recover lost commits", LEAVE_TO_USER)
        }
        "gc" if options.long_options.iter().any(|long| long.starts_with("prune=")) => {
            describe("gc --prune", "it deletes unreachable commits for good", LEAVE_TO_USER)
        }
        "update-ref" if options.has_any(&['d'], &[]) => describe("update-ref -d", LOSES_COMMITS, LEAVE_TO_USER),
        _ => None,
    }
}

/// Describes the harm of a branch deletion that can lose commits.
fn describe_branch_harm(options: &CommandOptions<'_>) -> Option<HarmDescription> {
    // Plain `-d` is safe: git itself refuses if commits would be lost.
    let is_forced_delete = options.has_any(&['d'], &["delete"]) && options.has_any(&['f'], &["force"]);
    let loses_commits = options.has_any(&['D'], &[]) || is_forced_delete;
    let alternative = "Use `git branch -d`, which refuses if commits would be lost, or leave it to the user";
    loses_commits.then(|| HarmDescription::for_git("branch -D", LOSES_COMMITS, alternative))
}

/// Describes the harm of a stash command that removes what was stashed.
fn describe_stash_harm(arguments: &[ShellWord]) -> Option<HarmDescription> {
    let stash_action = arguments.iter().find(|argument| !argument.0.starts_with('-')).map(ShellWord::to_plain_text);
    let stash_action = stash_action.filter(|stash_action| stash_action == "clear" || stash_action == "drop")?;
    let explanation = "the stash may contain changes of the user, and they would be lost";
    Some(HarmDescription::for_git(&format!("stash {stash_action}"), explanation, LEAVE_TO_USER))
}

/// Describes the harm of a push that replaces or removes commits on the remote.
fn describe_push_harm(options: &CommandOptions<'_>) -> Option<HarmDescription> {
    let has_long_option = |option_name: &str| {
        options
            .long_options
            .iter()
            .any(|long_option| long_option == option_name || long_option.starts_with(&format!("{option_name}=")))
    };
    // The first operand is the remote; refspecs follow.
    let refspecs = || options.operands.iter().skip(1);
    // A lease guards only against pushes since the last fetch; commits of others can still be lost.
    let harmful_form = if has_long_option("force-with-lease") {
        "push --force-with-lease"
    } else if has_long_option("force") || options.short_letters.contains('f') {
        "push --force"
    } else if refspecs().any(|refspec| refspec.0.starts_with('+')) {
        "push +REF, which is --force"
    } else if has_long_option("mirror") {
        "push --mirror"
    } else if has_long_option("delete")
        || options.short_letters.contains('d')
        || refspecs().any(|refspec| refspec.0.starts_with(':'))
    {
        "push --delete"
    } else {
        return None;
    };
    Some(HarmDescription::for_git(
        harmful_form,
        "it replaces or removes commits on the remote, and others may have built on them",
        "Push without force (fetch and merge first), or leave it to the user",
    ))
}

/// Whether an operand names all files: `.`, `:/`, `*`.
fn names_everything(options: &CommandOptions<'_>) -> bool {
    options.operands.iter().any(|operand| {
        let operand_text = operand.to_plain_text().trim_end_matches('/').to_string();
        matches!(operand_text.as_str(), "." | ":" | "*" | "./*" | ".." | ":(top)") || operand.0 == ":/"
    })
}

//! Recognises git commands whose effect cannot be undone.

use alloc::{
    format,
    string::{String, ToString},
};

use crate::{
    run::{Options, Run},
    shell::Word,
};

/// Describes a harmful command: what it is, why it is refused, and what to do instead.
pub(crate) struct Harm {
    pub what: String,
    pub why: &'static str,
    pub instead: &'static str,
}

/// Splits the arguments of git into the subcommand and its arguments, after git's own options.
pub(crate) fn subcommand(args: &[Word]) -> Option<(String, &[Word])> {
    let mut words = args;
    loop {
        let (first, rest) = words.split_first()?;
        let text = first.0.as_str();
        words = match text {
            // These options of git take a value, which must not be mistaken for the subcommand.
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" => rest.get(1..)?,
            _ if text.starts_with('-') => rest,
            _ => return Some((first.plain(), rest)),
        };
    }
}

/// The directory that `-C` names.
pub(crate) fn folder(args: &[Word]) -> Option<&Word> {
    let at = args.iter().take_while(|word| word.0.starts_with('-')).position(|word| word.0 == "-C")?;
    args.get(at + 1)
}

const UNCOMMITTED: &str = "it throws away changes that are not committed, and nobody can bring them back";
const TAKE_BACK: &str =
    "Take back single files with `git restore FILE`, or keep the changes with `git stash`";
const HISTORY: &str = "it throws away commits that others may need";
const ASK: &str = "Leave it to the person";

/// Describes the harm of a git command; `None` means that it can be undone or that only the index changes.
pub(crate) fn harm(run: &Run<'_>) -> Option<Harm> {
    let (command, args) = subcommand(run.args)?;
    let options = Options::of(args);
    let harm = |what: &str, why, instead| Some(Harm { what: format!("`git {what}`"), why, instead });
    match command.as_str() {
        "reset" if options.has(&[], &["hard"]) => harm("reset --hard", UNCOMMITTED, TAKE_BACK),
        "clean" if options.has(&['f'], &["force"]) && !options.has(&['n'], &["dry-run"]) => {
            let why = "it removes files that git does not know, and nobody can bring them back";
            harm(
                "clean --force",
                why,
                "See what it would remove with `git clean -n`, then remove single files by name",
            )
        }
        // A push has so many harmful forms that it has a function of its own.
        "push" => push(&options),
        "branch" => {
            // Plain `-d` is safe: git itself refuses if commits would be lost.
            let forced = options.has(&['d'], &["delete"]) && options.has(&['f'], &["force"]);
            let deletes = options.has(&['D'], &[]) || forced;
            let instead =
                "Use `git branch -d`, which refuses while commits would be lost, or leave it to the person";
            if deletes { harm("branch -D", HISTORY, instead) } else { None }
        }
        "stash" => {
            let which = args.iter().find(|word| !word.0.starts_with('-')).map(Word::plain);
            let which = which.filter(|which| which == "clear" || which == "drop")?;
            harm(
                &format!("stash {which}"),
                "what was put aside may be the person's, and it is gone then",
                ASK,
            )
        }
        "checkout" if options.has(&['f'], &["force"]) => harm("checkout --force", UNCOMMITTED, TAKE_BACK),
        "checkout" if names_everything(&options) => harm("checkout -- .", UNCOMMITTED, TAKE_BACK),
        "restore" if names_everything(&options) => {
            let index_only = options.has(&['S'], &["staged"]) && !options.has(&['W'], &["worktree"]);
            if index_only { None } else { harm("restore .", UNCOMMITTED, TAKE_BACK) }
        }
        "switch" if options.has(&['f'], &["force", "discard-changes"]) => {
            harm("switch --discard-changes", UNCOMMITTED, TAKE_BACK)
        }
        "rm" if names_everything(&options) && !options.has(&[], &["cached"]) => {
            harm("rm .", "it removes the whole project", "Remove single files by name")
        }
        "filter-branch" | "filter-repo" => harm(&command, "it rewrites all commits", ASK),
        "reflog" if ["expire", "delete"].contains(&options.plain().first().map_or("", String::as_str)) => {
            harm("reflog expire", "it throws away the way back to lost commits", ASK)
        }
        "gc" if options.long.iter().any(|long| long.starts_with("prune=")) => {
            harm("gc --prune", "it throws away lost commits for good", ASK)
        }
        "update-ref" if options.has(&['d'], &[]) => harm("update-ref -d", HISTORY, ASK),
        _ => None,
    }
}

/// Describes the harm of a push that replaces or removes commits on the remote.
fn push(options: &Options<'_>) -> Option<Harm> {
    let long =
        |name: &str| options.long.iter().any(|long| long == name || long.starts_with(&format!("{name}=")));
    // The first operand is the remote; refspecs follow.
    let refspecs = || options.operands.iter().skip(1);
    // A lease guards only against pushes since the last fetch; commits of others can still be lost.
    let what = if long("force-with-lease") {
        "push --force-with-lease"
    } else if long("force") || options.short.contains('f') {
        "push --force"
    } else if refspecs().any(|word| word.0.starts_with('+')) {
        "push +REF, which is --force"
    } else if long("mirror") {
        "push --mirror"
    } else if long("delete") || options.short.contains('d') || refspecs().any(|word| word.0.starts_with(':'))
    {
        "push --delete"
    } else {
        return None;
    };
    Some(Harm {
        what: format!("`git {what}`"),
        why: "it replaces or removes commits of a shared branch, and others may have built on them",
        instead: "Push without force (fetch and merge first), or leave it to the person",
    })
}

/// Whether an operand names all files: `.`, `:/`, `*`.
fn names_everything(options: &Options<'_>) -> bool {
    options.operands.iter().any(|word| {
        let plain = word.plain().trim_end_matches('/').to_string();
        matches!(plain.as_str(), "." | ":" | "*" | "./*" | ".." | ":(top)") || word.0 == ":/"
    })
}

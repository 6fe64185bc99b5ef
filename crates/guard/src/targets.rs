//! Finds the files that a command writes, moves or removes, as far as its words tell.
//!
//! Only programs with known arguments are read; the guard does not guess what any other program does.

use alloc::vec::Vec;

use crate::{
    run::{Run, value_of},
    shell::Word,
};

/// A file or directory that a command changes.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub word: Word,
    /// Whether the target is gone afterwards, with everything in it.
    pub removes: bool,
    /// Whether the write bounds apply. They do not apply to git, which stays in its repository; it may only not change files of
    /// Tribunal.
    pub bounded: bool,
}

impl Target {
    pub fn written(word: &Word) -> Target {
        Target { word: word.clone(), removes: false, bounded: true }
    }

    fn removed(word: &Word) -> Target {
        Target { word: word.clone(), removes: true, bounded: true }
    }
}

/// Lists the write targets of one invocation.
pub(crate) fn of(run: &Run<'_>) -> Vec<Target> {
    let options = run.options();
    let all = || options.operands.iter().copied();
    let written = |word: &Word| Target::written(word);
    match run.program.as_str() {
        // Without a recursive option `rm` leaves directories alone.
        "rm" if !options.has(&['r', 'R'], &["recursive"]) => all().map(written).collect(),
        "rm" | "trash" => all().map(Target::removed).collect(),
        "rmdir" | "unlink" | "shred" => all().map(written).collect(),
        // `mv` removes its sources, and its last operand is the destination unless an option names it.
        "mv" => {
            let mut targets: Vec<Target> = all().map(Target::removed).collect();
            match value_of(run.args, "-t", "--target-directory") {
                Some(into) => targets.push(written(&into)),
                None => targets.last_mut().into_iter().for_each(|into| into.removes = false),
            }
            targets
        }
        "cp" | "install" | "rsync" | "ln" | "scp" => {
            let into = value_of(run.args, "-t", "--target-directory");
            match into {
                Some(into) => Vec::from([written(&into)]),
                None if options.operands.len() > 1 => {
                    // A remote destination (`host:path`) is not on this machine.
                    let last = options.operands.last().filter(|word| !word.0.contains(':'));
                    last.map(|word| written(word)).into_iter().collect()
                }
                None => Vec::new(),
            }
        }
        "tee" | "touch" | "mkdir" | "ed" | "ex" | "vi" | "vim" | "nano" | "sponge" => {
            all().map(written).collect()
        }
        "truncate" | "fallocate" => {
            // The option parser does not know which options take a value, so the size stands among the operands.
            let sizes = [value_of(run.args, "-s", "--size"), value_of(run.args, "-l", "--length")];
            all().filter(|word| !sizes.iter().flatten().any(|size| size == *word)).map(written).collect()
        }
        // The first operand is the mode or the owner.
        "chmod" | "chown" | "chgrp" => all().skip(1).map(written).collect(),
        "sed" | "gsed" => edited(run),
        "perl" | "ruby" if in_place(run) => all().skip(1).map(written).collect(),
        "dd" => {
            let out = run.args.iter().filter_map(|word| word.0.strip_prefix("of="));
            out.map(|path| written(&Word(path.into()))).collect()
        }
        "curl" => {
            value_of(run.args, "-o", "--output").iter().filter(|word| word.0 != "-").map(written).collect()
        }
        "wget" => {
            let out = value_of(run.args, "-O", "--output-document");
            out.iter().filter(|word| word.0 != "-").map(written).collect()
        }
        "sort" => value_of(run.args, "-o", "--output").iter().map(written).collect(),
        "sqlite3"
            if !options.long.iter().any(|long| long == "readonly") && !options.short.contains("readonly") =>
        {
            // A database elsewhere may be opened freely; only Tribunal's own ones are protected.
            all().take(1).map(|word| Target { bounded: false, ..written(word) }).collect()
        }
        // The tests of `find` that select files are not evaluated, so only the start directory counts.
        "find" if deletes(run) => all().take(1).map(written).collect(),
        "git" => by_git(run),
        _ => Vec::new(),
    }
}

/// Whether the options of `sed`, `perl` or `ruby` say that files are edited in place.
fn in_place(run: &Run<'_>) -> bool {
    // `-i`, `-pi` and `-i.bak` edit in place; a longer group such as `-Ilib` is something else.
    let short = |word: &Word| {
        let letters = word.0.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letters.is_some_and(|letters| {
            letters.split('.').next().is_some_and(|letters| letters.len() < 5 && letters.contains('i'))
        })
    };
    run.args
        .iter()
        .take_while(|word| word.0 != "--")
        .any(|word| short(word) || word.0.starts_with("--in-place"))
}

/// The files of `sed -i`: the first operand is the script, unless an option supplied it.
fn edited(run: &Run<'_>) -> Vec<Target> {
    if !in_place(run) {
        return Vec::new();
    }
    let mut files = Vec::new();
    let mut scripted = false;
    let mut words = run.args.iter();
    while let Some(word) = words.next() {
        match word.0.as_str() {
            "-e" | "-f" | "--expression" | "--file" => {
                scripted = true;
                words.next();
            }
            // On macOS `-i` takes a separate suffix, which is often empty.
            "" => {}
            text if text.starts_with("--expression=") || text.starts_with("--file=") => scripted = true,
            text if text.starts_with('-') => {}
            _ => files.push(Target::written(word)),
        }
    }
    if !scripted && !files.is_empty() {
        files.remove(0);
    }
    files
}

/// Whether a `find` command deletes what it finds.
pub(crate) fn deletes(run: &Run<'_>) -> bool {
    run.args.iter().any(|word| word.0 == "-delete")
        || run.args.windows(2).any(|pair| {
            matches!(pair, [exec, program] if matches!(exec.0.as_str(), "-exec" | "-execdir" | "-ok")
                && matches!(program.0.rsplit('/').next(), Some("rm" | "shred" | "unlink")))
        })
}

/// The files that git restores, moves or removes.
fn by_git(run: &Run<'_>) -> Vec<Target> {
    let Some((command, args)) = crate::git::subcommand(run.args) else { return Vec::new() };
    let run = Run { program: command, args };
    let options = run.options();
    if !["checkout", "restore", "rm", "mv"].contains(&run.program.as_str()) {
        return Vec::new();
    }
    // Commands that change only the index leave the files as they are.
    let index_only = match run.program.as_str() {
        "rm" => options.has(&[], &["cached"]),
        "restore" => options.has(&['S'], &["staged"]) && !options.has(&['W'], &["worktree"]),
        _ => false,
    };
    if index_only {
        return Vec::new();
    }
    // Git changes a directory with everything in it.
    options.operands.iter().map(|word| Target { bounded: false, ..Target::removed(word) }).collect()
}

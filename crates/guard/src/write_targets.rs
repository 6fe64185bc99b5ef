//! Finds the files that a command writes, moves or removes, as far as its words tell.
//!
//! Only programs with known arguments are read; the guard does not guess what any other program does.

use alloc::vec::Vec;

use crate::{
    invocation::{CommandOptions, ProgramInvocation, find_option_value},
    shell::ShellWord,
};

/// A file or directory that a command changes.
#[derive(Clone, Debug)]
pub(crate) struct WriteTarget {
    pub word: ShellWord,
    /// Whether the target is gone afterwards, with everything in it.
    pub removes: bool,
    /// Whether the write bounds apply. They do not apply to git, which stays in its repository, and to databases. The files of
    /// Tribunal are protected in any case.
    pub is_bounded: bool,
}

impl WriteTarget {
    pub fn for_write(word: &ShellWord) -> WriteTarget {
        WriteTarget { word: word.clone(), removes: false, is_bounded: true }
    }

    fn for_removal(word: &ShellWord) -> WriteTarget {
        WriteTarget { word: word.clone(), removes: true, is_bounded: true }
    }
}

/// Lists the write targets of one invocation.
pub(crate) fn find_write_targets(invocation: &ProgramInvocation<'_>) -> Vec<WriteTarget> {
    let options = invocation.parse_options();
    let all_operands = || options.operands.iter().copied();
    let write_to = |operand: &ShellWord| WriteTarget::for_write(operand);
    match invocation.program.as_str() {
        // Without a recursive option `rm` leaves directories alone.
        "rm" if !options.has_any(&['r', 'R'], &["recursive"]) => all_operands().map(write_to).collect(),
        "rm" | "trash" => all_operands().map(WriteTarget::for_removal).collect(),
        "rmdir" | "unlink" | "shred" => all_operands().map(write_to).collect(),
        "mv" => find_move_targets(invocation, &options),
        "cp" | "install" | "rsync" | "ln" | "scp" => find_copy_targets(invocation, &options),
        "tee" | "touch" | "mkdir" | "ed" | "ex" | "vi" | "vim" | "nano" | "sponge" => {
            all_operands().map(write_to).collect()
        }
        "truncate" | "fallocate" => find_resize_targets(invocation, &options),
        // The first operand is the mode or the owner.
        "chmod" | "chown" | "chgrp" => all_operands().skip(1).map(write_to).collect(),
        "sed" | "gsed" => find_sed_targets(invocation),
        "perl" | "ruby" if edits_in_place(invocation) => all_operands().skip(1).map(write_to).collect(),
        "dd" => {
            let output_paths = invocation.args.iter().filter_map(|argument| argument.0.strip_prefix("of="));
            output_paths.map(|output_path| write_to(&ShellWord(output_path.into()))).collect()
        }
        "curl" => find_option_value(invocation.args, "-o", "--output")
            .iter()
            .filter(|file_word| file_word.0 != "-")
            .map(write_to)
            .collect(),
        "wget" => {
            let output_word = find_option_value(invocation.args, "-O", "--output-document");
            output_word.iter().filter(|file_word| file_word.0 != "-").map(write_to).collect()
        }
        "sort" => find_option_value(invocation.args, "-o", "--output").iter().map(write_to).collect(),
        "sqlite3"
            if !options.long_options.iter().any(|long| long == "readonly")
                && !options.short_letters.contains("readonly") =>
        {
            // A database elsewhere may be opened freely; only Tribunal's own ones are protected.
            all_operands().take(1).map(|operand| WriteTarget { is_bounded: false, ..write_to(operand) }).collect()
        }
        // The tests of `find` that select files are not evaluated, so only the start directory counts.
        "find" if is_deleting_find(invocation) => all_operands().take(1).map(write_to).collect(),
        "git" => find_git_targets(invocation),
        _ => Vec::new(),
    }
}

/// Lists what `mv` changes: it removes its sources, and its last operand is the destination unless an option names it.
fn find_move_targets(invocation: &ProgramInvocation<'_>, options: &CommandOptions<'_>) -> Vec<WriteTarget> {
    let mut targets: Vec<WriteTarget> = options.operands.iter().copied().map(WriteTarget::for_removal).collect();
    match find_option_value(invocation.args, "-t", "--target-directory") {
        Some(destination) => targets.push(WriteTarget::for_write(&destination)),
        None => targets.last_mut().into_iter().for_each(|last_target| last_target.removes = false),
    }
    targets
}

/// Finds the destination of `cp` and similar programs: the last operand, unless an option names it.
fn find_copy_targets(invocation: &ProgramInvocation<'_>, options: &CommandOptions<'_>) -> Vec<WriteTarget> {
    let destination = find_option_value(invocation.args, "-t", "--target-directory");
    match destination {
        Some(destination) => Vec::from([WriteTarget::for_write(&destination)]),
        None if options.operands.len() > 1 => {
            // A remote destination (`host:path`) is not on this machine.
            let last_operand = options.operands.last().filter(|operand| !operand.0.contains(':'));
            last_operand.map(|operand| WriteTarget::for_write(operand)).into_iter().collect()
        }
        None => Vec::new(),
    }
}

/// Lists the files that `truncate` or `fallocate` gives another size.
fn find_resize_targets(invocation: &ProgramInvocation<'_>, options: &CommandOptions<'_>) -> Vec<WriteTarget> {
    // The option parser does not know which options take a value, so the size stands among the operands.
    let size_values =
        [find_option_value(invocation.args, "-s", "--size"), find_option_value(invocation.args, "-l", "--length")];
    let is_size = |operand: &ShellWord| size_values.iter().flatten().any(|size_value| size_value == operand);
    options.operands.iter().filter(|operand| !is_size(operand)).map(|operand| WriteTarget::for_write(operand)).collect()
}

/// Whether the options of `sed`, `perl` or `ruby` say that files are edited in place.
fn edits_in_place(invocation: &ProgramInvocation<'_>) -> bool {
    // `-i`, `-pi` and `-i.bak` edit in place; a group of five letters or more, such as `-Iinclude`, is something else.
    let has_short_flag = |argument: &ShellWord| {
        let flag_letters = argument.0.strip_prefix('-').filter(|flag_letters| !flag_letters.starts_with('-'));
        flag_letters.is_some_and(|flag_letters| {
            flag_letters
                .split('.')
                .next()
                .is_some_and(|letter_group| letter_group.len() < 5 && letter_group.contains('i'))
        })
    };
    invocation
        .args
        .iter()
        .take_while(|argument| argument.0 != "--")
        .any(|argument| has_short_flag(argument) || argument.0.starts_with("--in-place"))
}

/// The files of `sed -i`: the first operand is the script, unless an option supplied it.
fn find_sed_targets(invocation: &ProgramInvocation<'_>) -> Vec<WriteTarget> {
    if !edits_in_place(invocation) {
        return Vec::new();
    }
    let mut file_targets = Vec::new();
    let mut has_script_option = false;
    let mut arguments = invocation.args.iter();
    while let Some(argument) = arguments.next() {
        match argument.0.as_str() {
            "-e" | "-f" | "--expression" | "--file" => {
                has_script_option = true;
                arguments.next();
            }
            // On macOS `-i` takes a separate suffix, which is often empty.
            "" => {}
            argument_text if argument_text.starts_with("--expression=") || argument_text.starts_with("--file=") => {
                has_script_option = true
            }
            argument_text if argument_text.starts_with('-') => {}
            _ => file_targets.push(WriteTarget::for_write(argument)),
        }
    }
    if !has_script_option && !file_targets.is_empty() {
        file_targets.remove(0);
    }
    file_targets
}

/// Whether a `find` command deletes what it finds.
pub(crate) fn is_deleting_find(invocation: &ProgramInvocation<'_>) -> bool {
    invocation.args.iter().any(|argument| argument.0 == "-delete")
        || invocation.args.windows(2).any(|argument_pair| {
            matches!(argument_pair, [exec, program] if matches!(exec.0.as_str(), "-exec" | "-execdir" | "-ok")
                && matches!(program.0.rsplit('/').next(), Some("rm" | "shred" | "unlink")))
        })
}

/// The files that git restores, moves or removes.
fn find_git_targets(invocation: &ProgramInvocation<'_>) -> Vec<WriteTarget> {
    let Some((subcommand_name, args)) = crate::git::split_subcommand(invocation.args) else {
        return Vec::new();
    };
    let invocation = ProgramInvocation { program: subcommand_name, args };
    let options = invocation.parse_options();
    if !["checkout", "restore", "rm", "mv"].contains(&invocation.program.as_str()) {
        return Vec::new();
    }
    // Commands that change only the index leave the files as they are.
    let is_index_only = match invocation.program.as_str() {
        "rm" => options.has_any(&[], &["cached"]),
        "restore" => options.has_any(&['S'], &["staged"]) && !options.has_any(&['W'], &["worktree"]),
        _ => false,
    };
    if is_index_only {
        return Vec::new();
    }
    // Git changes a directory with everything in it.
    options
        .operands
        .iter()
        .map(|operand| WriteTarget { is_bounded: false, ..WriteTarget::for_removal(operand) })
        .collect()
}

//! Recognises commands whose harm cannot be undone.

use alloc::{format, string::ToString};

use crate::{
    git::{self, Harm},
    places::Path,
    run::{Run, SHELLS},
    scene::{Place, Scene},
    shell::{Item, Script, Word},
    targets,
};

/// Devices that a program may write to without overwriting anything.
const TAME_DEVICES: [&str; 8] = ["null", "stdout", "stderr", "stdin", "tty", "zero", "full", "fd"];

const OUTSIDE: &str = "it removes what is not the project's";
const BY_NAME: &str = "Remove what you mean by its name, inside the project";

/// Describes the harm of an invocation; `None` means that no known harm comes of it.
pub(crate) fn harm(run: &Run<'_>, scene: &Scene<'_>) -> Option<Harm> {
    let program = run.program.as_str();
    let options = run.options();
    let harm = |what: &str, why, instead| Some(Harm { what: format!("`{what}`"), why, instead });
    const ASK: &str = "Leave it to the person";
    match program {
        "rm" if options.has(&['r', 'R'], &["recursive"]) => {
            options.operands.iter().find_map(|word| removal("rm -r", word, scene))
        }
        "find" if targets::deletes(run) => find(run, scene),
        // In a temporary repository even `git reset --hard` loses no lasting work.
        "git" if !in_scratch(run, scene) => git::harm(run),
        "mkfs" | "mke2fs" | "wipefs" | "mkswap" => harm(program, "it erases a disk", ASK),
        _ if program.starts_with("mkfs.") => harm(program, "it erases a disk", ASK),
        "chmod" | "chown" | "chgrp" if options.has(&['R'], &["recursive"]) => {
            // The first operand is the mode or the owner.
            let mut files = options.operands.iter().skip(1);
            let word = files.find(|word| scene.places(word).iter().any(|place| beyond(place, scene)))?;
            let what = format!("{program} -R {}", crate::clipped(&word.plain()));
            harm(
                &what,
                "it changes who may use files that are not the project's",
                "Name the files in the project",
            )
        }
        "shutdown" | "reboot" | "halt" | "poweroff" => harm(program, "it stops the machine", ASK),
        "init" | "telinit"
            if matches!(options.plain().first().map(|word| word.as_str()), Some("0" | "6")) =>
        {
            harm(program, "it stops the machine", ASK)
        }
        "systemctl" => {
            let words = options.plain();
            let which = words
                .first()
                .filter(|word| ["poweroff", "reboot", "halt", "kexec"].contains(&word.as_str()))?;
            harm(&format!("systemctl {which}"), "it stops the machine", ASK)
        }
        "kill" => kills_all(run).then(|| Harm {
            what: "`kill` of -1".to_string(),
            why: "it ends every process of this person",
            instead: "End the process you started by its id",
        }),
        // `crontab -r` asks no question and keeps no copy.
        "crontab" if options.has(&['r'], &[]) => {
            harm("crontab -r", "it removes all of the person's timed commands", ASK)
        }
        _ => None,
    }
}

/// Whether git works on a repository in a temporary directory, which holds no lasting work.
fn in_scratch(run: &Run<'_>, scene: &Scene<'_>) -> bool {
    let mut there = scene.clone();
    // `git -C` changes the directory for this invocation only, so the change goes to a copy of the state.
    if let Some(folder) = git::folder(run.args) {
        there.go(Some(folder));
    }
    there.in_scratch()
}

/// Describes the harm of removing an operand with everything in it.
fn removal(command: &str, word: &Word, scene: &Scene<'_>) -> Option<Harm> {
    let harm = |why, instead| {
        Some(Harm { what: format!("`{command} {}`", crate::clipped(&word.plain())), why, instead })
    };
    // `rm` itself refuses these, but the agent should learn why.
    if matches!(word.0.trim_end_matches('/'), "." | "..") {
        return harm("it removes the folder it is in", BY_NAME);
    }
    // One harmful expansion is enough: in `for d in a / b` the second value removes everything.
    for reading in scene.readings(word) {
        let place = scene.place(&reading);
        let Place::At(path) = &place else {
            // The leading slash only makes the expansion parseable; what counts is whether it consists of wildcards alone.
            let all = Path::of(&format!("/{reading}"), None)
                .is_some_and(|path| path.is_all_of_its_folder() || path.0.is_empty());
            match place {
                Place::Doubtful => {
                    return harm(
                        "nobody can tell what the variable in front stands for, and an empty one means everything",
                        "Write the path itself",
                    );
                }
                Place::Somewhere if all => {
                    return harm("nobody can tell in which folder this is", "Write the path itself");
                }
                _ => continue,
            }
        };
        // `dir/*` removes as much as `dir`, so both are judged by the directory.
        let all_in_it = path.is_all_of_its_folder();
        let folder = if all_in_it { path.parent() } else { path.clone() };
        let map = scene.map;
        let repository = map.root.join(".git");
        if map.root.is_in(&folder) {
            return harm("it removes the whole project or more", BY_NAME);
        }
        if !map.in_project(&folder) && !map.in_scratch(&folder) {
            return harm(OUTSIDE, BY_NAME);
        }
        // Other files of the repository, such as a stale `index.lock`, may be removed.
        if folder == repository
            || folder.is_in(&repository.join("objects"))
            || folder.is_in(&repository.join("refs"))
        {
            return harm("it removes the project's history", BY_NAME);
        }
    }
    None
}

/// Describes the harm of a deleting `find` that no test narrows down.
fn find(run: &Run<'_>, scene: &Scene<'_>) -> Option<Harm> {
    const TESTS: [&str; 16] = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-newer",
        "-mtime",
        "-mmin",
        "-atime",
        "-ctime",
        "-size",
        "-empty",
        "-user",
        "-perm",
    ];
    let narrow = run.args.iter().any(|word| TESTS.contains(&word.0.as_str()));
    // Without a start directory GNU `find` begins in the working directory.
    let start = run.args.iter().find(|word| !word.0.starts_with('-'));
    let here = Word(".".to_string());
    let start = start.unwrap_or(&here);
    let places = scene.places(start);
    let bad = places.iter().any(|place| match place {
        Place::At(path) if scene.map.in_project(path) => !narrow && *path == scene.map.root,
        Place::At(_) => beyond(place, scene) && !scratch(place, scene),
        Place::Doubtful => !narrow,
        _ => false,
    });
    bad.then(|| Harm {
        what: format!("`find {}` with removing", crate::clipped(&start.plain())),
        why: "it removes the whole project, or what is not the project's",
        instead: "Begin in a folder of the project and say with -name what is meant",
    })
}

/// Whether a location is known and neither in the project nor temporary.
fn beyond(place: &Place, scene: &Scene<'_>) -> bool {
    matches!(place, Place::At(path) if !scene.map.in_project(path) && !scene.map.in_scratch(path))
}

/// Whether a location is known and temporary.
fn scratch(place: &Place, scene: &Scene<'_>) -> bool {
    matches!(place, Place::At(path) if scene.map.in_scratch(path))
}

/// Whether `kill` is sent to every process of the user.
fn kills_all(run: &Run<'_>) -> bool {
    // The first argument may be the signal: `kill -1 5` sends SIGHUP to process 5.
    let signal = run.args.first().is_some_and(|word| word.0.starts_with('-') && word.0 != "--");
    let spelt = run.args.first().is_some_and(|word| matches!(word.0.as_str(), "-s" | "-n"));
    run.args.iter().skip(usize::from(signal) + usize::from(spelt)).any(|word| word.0 == "-1")
}

/// Describes the harm of writing to a device, which would overwrite its contents.
pub(crate) fn device(path: &Path) -> Option<Harm> {
    // `/dev/shm` and `/dev/pts` are directories: memory and terminals, not disks.
    let [dev, name, ..] = path.0.as_slice() else { return None };
    if dev != "dev" || TAME_DEVICES.contains(&name.as_str()) || name == "shm" || name == "pts" {
        return None;
    }
    Some(Harm {
        what: format!("writing to `/{}`", path.0.join("/")),
        why: "it overwrites a device",
        instead: "Write to a file in the project",
    })
}

/// Whether the path is a device that is safe to write to, wherever the write bounds end.
pub(crate) fn tame_device(path: &Path) -> bool {
    matches!(path.0.as_slice(), [dev, name, ..] if dev == "dev" && TAME_DEVICES.contains(&name.as_str()))
}

/// Recognises a function that calls itself twice in the background: `:(){ :|:& };:`.
pub(crate) fn fork_bomb(script: &Script) -> Option<Harm> {
    let calls = || {
        script.items.iter().filter_map(|item| match item {
            Item::Call(call) => Some(call),
            _ => None,
        })
    };
    // The pattern is a pipeline of one of the script's own functions with itself, put into the background.
    let itself = |word: Option<&Word>| word.is_some_and(|word| script.functions.contains(&word.plain()));
    let bomb = !script.functions.is_empty()
        && calls().zip(calls().skip(1)).any(|(one, two)| {
            one.pipeline == two.pipeline
                && two.background
                && itself(one.words.first())
                && one.words.first() == two.words.first()
        });
    bomb.then(|| Harm {
        what: "a function that starts itself twice".to_string(),
        why: "it fills the machine with processes",
        instead: "Leave it out",
    })
}

/// Whether the program fetches something from the network, which a later program might run unread.
pub(crate) fn fetches(run: &Run<'_>) -> bool {
    matches!(run.program.as_str(), "curl" | "wget" | "fetch")
}

/// Describes the harm of running a script that was just fetched.
pub(crate) fn unread() -> Harm {
    Harm {
        what: "running what was just fetched".to_string(),
        why: "nobody has read it",
        instead: "Save it to a file, read it, then run it if it is what you want",
    }
}

/// Whether a shell runs a fetched script directly: `sh -c "$(curl …)"`, `bash <(curl …)`, `eval "$(wget …)"`, `. <(curl …)`.
pub(crate) fn runs_fetched(run: &Run<'_>) -> bool {
    let runs =
        SHELLS.contains(&run.program.as_str()) || ["eval", ".", "source"].contains(&run.program.as_str());
    // The lexer keeps a substitution in its word as a mark and `(COMMANDS)`.
    runs && run.args.iter().any(|word| word.0.starts_with("\u{1}(curl ") || word.0.starts_with("\u{1}(wget "))
}

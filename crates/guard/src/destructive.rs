//! Commands whose harm nobody can take back.

use alloc::{format, string::ToString};

use crate::{
    git::{self, Harm},
    places::Path,
    run::{Run, SHELLS},
    scene::{Place, Scene},
    shell::{Item, Script, Word},
    targets,
};

/// Where a program may write although these are devices.
const TAME_DEVICES: [&str; 8] = ["null", "stdout", "stderr", "stdin", "tty", "zero", "full", "fd"];

const OUTSIDE: &str = "it removes what is not the project's";
const BY_NAME: &str = "Remove what you mean by its name, inside the project";

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
        "git" if !in_scratch(run, scene) => git::harm(run),
        "mkfs" | "mke2fs" | "wipefs" | "mkswap" => harm(program, "it erases a disk", ASK),
        _ if program.starts_with("mkfs.") => harm(program, "it erases a disk", ASK),
        "chmod" | "chown" | "chgrp" if options.has(&['R'], &["recursive"]) => {
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
        "crontab" if options.has(&['r'], &[]) => {
            harm("crontab -r", "it removes all of the person's timed commands", ASK)
        }
        _ => None,
    }
}

/// A repository in a temporary folder is nobody's work.
fn in_scratch(run: &Run<'_>, scene: &Scene<'_>) -> bool {
    let mut there = scene.clone();
    if let Some(folder) = git::folder(run.args) {
        there.go(Some(folder));
    }
    there.in_scratch()
}

/// Removing this word with all that is in it.
fn removal(command: &str, word: &Word, scene: &Scene<'_>) -> Option<Harm> {
    let harm = |why, instead| {
        Some(Harm { what: format!("`{command} {}`", crate::clipped(&word.plain())), why, instead })
    };
    // `rm` itself refuses these.
    if matches!(word.0.trim_end_matches('/'), "." | "..") {
        return harm("it removes the folder it is in", BY_NAME);
    }
    for reading in scene.readings(word) {
        let place = scene.place(&reading);
        let Place::At(path) = &place else {
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
        if folder == repository
            || folder.is_in(&repository.join("objects"))
            || folder.is_in(&repository.join("refs"))
        {
            return harm("it removes the project's history", BY_NAME);
        }
    }
    None
}

/// `find … -delete`, with nothing that narrows it down.
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

/// Neither in the project nor temporary.
fn beyond(place: &Place, scene: &Scene<'_>) -> bool {
    matches!(place, Place::At(path) if !scene.map.in_project(path) && !scene.map.in_scratch(path))
}

fn scratch(place: &Place, scene: &Scene<'_>) -> bool {
    matches!(place, Place::At(path) if scene.map.in_scratch(path))
}

fn kills_all(run: &Run<'_>) -> bool {
    // The first may be the signal: `kill -1 5` hangs up process 5.
    let signal = run.args.first().is_some_and(|word| word.0.starts_with('-') && word.0 != "--");
    let spelt = run.args.first().is_some_and(|word| matches!(word.0.as_str(), "-s" | "-n"));
    run.args.iter().skip(usize::from(signal) + usize::from(spelt)).any(|word| word.0 == "-1")
}

/// A device whose contents would be overwritten.
pub(crate) fn device(path: &Path) -> Option<Harm> {
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

pub(crate) fn tame_device(path: &Path) -> bool {
    matches!(path.0.as_slice(), [dev, name, ..] if dev == "dev" && TAME_DEVICES.contains(&name.as_str()))
}

/// `:(){ :|:& };:`
pub(crate) fn fork_bomb(script: &Script) -> Option<Harm> {
    let calls = || {
        script.items.iter().filter_map(|item| match item {
            Item::Call(call) => Some(call),
            _ => None,
        })
    };
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

/// What comes from the network and would be run unread.
pub(crate) fn fetches(run: &Run<'_>) -> bool {
    matches!(run.program.as_str(), "curl" | "wget" | "fetch")
}

pub(crate) fn unread() -> Harm {
    Harm {
        what: "running what was just fetched".to_string(),
        why: "nobody has read it",
        instead: "Save it to a file, read it, then run it if it is what you want",
    }
}

/// `sh -c "$(curl …)"`, `bash <(curl …)`, `eval "$(wget …)"`, `. <(curl …)`.
pub(crate) fn runs_fetched(run: &Run<'_>) -> bool {
    let runs =
        SHELLS.contains(&run.program.as_str()) || ["eval", ".", "source"].contains(&run.program.as_str());
    runs && run.args.iter().any(|word| word.0.starts_with("\u{1}(curl ") || word.0.starts_with("\u{1}(wget "))
}

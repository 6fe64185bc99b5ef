//! Arguments of commands whose options are made when the command is used.

use std::ops::Deref;

use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The arguments of one command. Making all options of all commands took half of the time that `tribunal --version` needs;
/// these are made only if the command or its help was asked for.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub T);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Deferred)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(augment_later::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

/// Adds the options. What is said about the command stays: that of `T` is for readers of the code.
fn augment_later<T: Args>(command: Command) -> Command {
    let about = command.get_about().cloned();
    let command = T::augment_args(command).long_about(None);
    match about {
        Some(about) => command.about(about),
        None => command.about(None),
    }
}

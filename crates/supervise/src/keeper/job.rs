//! What a keeper is told to start, as it is sent on the control channel.

use std::{
    ffi::OsString,
    io::{self, Read},
    os::{
        fd::RawFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::PathBuf,
    time::Duration,
};

use crate::sandbox::SandboxRules;

/// The field that stands for no sandbox or no limit. It is no line of rules.
const NONE_FIELD: &str = "-";
/// More than any system accepts as arguments and environment together.
const MAX_JOB_BYTES: usize = 64 << 20;

/// A process for a keeper to start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeeperJob {
    /// The numbers of its three streams in the parent; `None` for those that the keeper itself was started with.
    pub streams: Option<[RawFd; 3]>,
    pub grace_period: Duration,
    pub file_limit: Option<u64>,
    pub sandbox: Option<SandboxRules>,
    pub working_dir: PathBuf,
    /// The whole environment. The keeper may have been started for another process, with another one.
    pub environment: Vec<(OsString, OsString)>,
    pub program: OsString,
    pub args: Vec<OsString>,
}

impl KeeperJob {
    /// Returns the fields, each ended by a zero byte, after their length. Fails if one contains a zero byte, which no program
    /// can be given.
    pub fn to_message(&self) -> io::Result<Vec<u8>> {
        let optional_field = |field: Option<OsString>| field.unwrap_or_else(|| NONE_FIELD.into());
        let streams_text = self.streams.map(|[stdin, stdout, stderr]| format!("{stdin},{stdout},{stderr}").into());
        let mut fields: Vec<OsString> = vec![
            optional_field(streams_text),
            self.grace_period.as_millis().to_string().into(),
            optional_field(self.file_limit.map(|file_limit| file_limit.to_string().into())),
            optional_field(self.sandbox.as_ref().map(SandboxRules::to_field)),
            self.working_dir.clone().into_os_string(),
            self.environment.len().to_string().into(),
        ];
        for (name, value) in &self.environment {
            fields.extend([name.clone(), value.clone()]);
        }
        fields.push(self.program.clone());
        fields.extend(self.args.iter().cloned());
        let mut message = vec![0; size_of::<u32>()];
        for field in fields {
            if field.as_bytes().contains(&0) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "an argument or variable has a zero byte"));
            }
            message.extend_from_slice(field.as_bytes());
            message.push(0);
        }
        let length = u32::try_from(message.len() - size_of::<u32>()).map_err(io::Error::other)?;
        message[..size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
        Ok(message)
    }

    /// Waits for a job. `None` if the channel ends before, or if what comes is no job.
    pub fn read_from(mut channel: impl Read) -> Option<KeeperJob> {
        let mut length_bytes = [0; size_of::<u32>()];
        channel.read_exact(&mut length_bytes).ok()?;
        let length =
            usize::try_from(u32::from_le_bytes(length_bytes)).ok().filter(|length| *length <= MAX_JOB_BYTES)?;
        let mut message = vec![0; length];
        channel.read_exact(&mut message).ok()?;
        let mut fields =
            message.strip_suffix(&[0])?.split(|byte| *byte == 0).map(|field| OsString::from_vec(field.to_vec()));
        let mut next_field = || fields.next();
        let streams_field = next_field()?;
        let streams = match streams_field.to_str()? {
            NONE_FIELD => None,
            numbers => {
                let numbers: Vec<RawFd> =
                    numbers.split(',').map(|number| number.parse().ok()).collect::<Option<_>>()?;
                Some(numbers.try_into().ok()?)
            }
        };
        let grace_period = Duration::from_millis(next_field()?.to_str()?.parse().ok()?);
        let file_limit = next_field()?.to_str()?.parse().ok();
        let sandbox = match next_field()? {
            field if field == NONE_FIELD => None,
            // Rules that cannot be read end the keeper: the process must not start without them.
            field => Some(SandboxRules::from_field(&field)?),
        };
        let working_dir = PathBuf::from(next_field()?);
        let variable_count: usize = next_field()?.to_str()?.parse().ok()?;
        let environment =
            (0..variable_count).map(|_| Some((next_field()?, next_field()?))).collect::<Option<Vec<_>>>()?;
        let program = next_field()?;
        let args = fields.collect();
        Some(KeeperJob { streams, grace_period, file_limit, sandbox, working_dir, environment, program, args })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_job() -> KeeperJob {
        KeeperJob {
            streams: Some([7, 8, 9]),
            grace_period: Duration::from_millis(250),
            file_limit: Some(1024),
            sandbox: None,
            working_dir: "/a b".into(),
            environment: vec![("A".into(), "".into()), ("B".into(), OsString::from_vec(vec![0xff, b'\n', b'=']))],
            program: "sh".into(),
            args: vec!["-c".into(), "".into(), "x\ny".into()],
        }
    }

    #[test]
    fn a_job_arrives_as_it_was_sent() {
        for job in [
            sample_job(),
            KeeperJob { environment: Vec::new(), args: Vec::new(), file_limit: None, streams: None, ..sample_job() },
        ] {
            assert_eq!(KeeperJob::read_from(&job.to_message().unwrap()[..]), Some(job));
        }
    }

    #[test]
    fn a_job_that_is_cut_off_is_none() {
        let message = sample_job().to_message().unwrap();
        for length in 0..message.len() {
            assert_eq!(KeeperJob::read_from(&message[..length]), None);
        }
    }

    #[test]
    fn a_zero_byte_is_refused() {
        let job = KeeperJob { args: vec!["a\0b".into()], ..sample_job() };
        assert_eq!(job.to_message().unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}

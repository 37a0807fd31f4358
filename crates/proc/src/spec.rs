//! What to start, and its form on the control socket.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::{Env, Error};

/// What to start. `Debug` shows how many arguments there are but not what they say, and the names of
/// variables but not their values.
#[derive(Clone)]
pub struct Spec {
    /// Absolute path of the program. It is also the child's `argv[0]`.
    pub program: PathBuf,
    /// The arguments after `argv[0]`.
    pub args: Vec<OsString>,
    /// Absolute path of the directory to start in.
    pub cwd: PathBuf,
    /// The whole environment of the child; nothing is added.
    pub env: Env,
}

impl Spec {
    /// A program without arguments in an empty environment.
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Spec {
        Spec { program: program.into(), args: Vec::new(), cwd: cwd.into(), env: Env::empty() }
    }

    /// Appends one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Spec {
        self.args.push(arg.into());
        self
    }

    /// The body of the first message to the host: whether there is a terminal, the counts of arguments
    /// and variables, then every string with the zero byte that ends it, so that the host can execute
    /// from this very buffer.
    pub(crate) fn encode(&self, tty: Tty) -> Result<Vec<u8>, Error> {
        for path in [&self.program, &self.cwd] {
            if !path.is_absolute() {
                return Err(Error::NotAbsolute { path: path.clone() });
            }
        }
        let mut body = Vec::with_capacity(4096);
        body.push(u8::from(tty == Tty::Stdin));
        body.extend_from_slice(&count(self.args.len()).to_le_bytes());
        body.extend_from_slice(&count(self.env.len()).to_le_bytes());
        push(&mut body, self.program.as_os_str(), || "the program's path".into())?;
        push(&mut body, self.cwd.as_os_str(), || "the directory's path".into())?;
        for (index, arg) in self.args.iter().enumerate() {
            push(&mut body, arg, || format!("argument {}", index + 1))?;
        }
        for (name, value) in self.env.iter() {
            let shown = || name.to_string_lossy().into_owned();
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                return Err(Error::BadVariable { name: shown() });
            }
            let mut pair = name.to_os_string();
            pair.push("=");
            pair.push(value);
            push(&mut body, &pair, || format!("the variable {:?}", shown()))?;
        }
        Ok(body)
    }
}

impl std::fmt::Debug for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spec")
            .field("program", &self.program)
            .field("n_args", &self.args.len())
            .field("cwd", &self.cwd)
            .field("env", &self.env)
            .finish()
    }
}

/// Which terminal the process shall have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tty {
    /// None, not even ours.
    None,
    /// The one that is its standard input becomes its controlling terminal.
    Stdin,
}

/// A [`Spec`] as the host received it.
pub(crate) struct Image<'a> {
    pub(crate) tty: Tty,
    pub(crate) program: &'a std::ffi::CStr,
    pub(crate) cwd: &'a std::ffi::CStr,
    pub(crate) args: Vec<&'a std::ffi::CStr>,
    pub(crate) env: Vec<&'a std::ffi::CStr>,
}

impl Image<'_> {
    /// `None` if the body was not written by [`Spec::encode`].
    pub(crate) fn decode(body: &[u8]) -> Option<Image<'_>> {
        let (tty, rest) = body.split_first()?;
        let tty = if *tty == 0 { Tty::None } else { Tty::Stdin };
        let (n_args, rest) = rest.split_first_chunk::<4>()?;
        let (n_env, rest) = rest.split_first_chunk::<4>()?;
        let mut strings =
            rest.split_inclusive(|byte| *byte == 0).map(std::ffi::CStr::from_bytes_with_nul);
        let mut next = || strings.next()?.ok();
        let program = next()?;
        let cwd = next()?;
        let args = (0..u32::from_le_bytes(*n_args)).map(|_| next()).collect::<Option<_>>()?;
        let env = (0..u32::from_le_bytes(*n_env)).map(|_| next()).collect::<Option<_>>()?;
        Some(Image { tty, program, cwd, args, env })
    }
}

/// The program's name for error texts.
pub(crate) fn shown(program: &Path) -> String {
    program.display().to_string()
}

fn push(body: &mut Vec<u8>, text: &OsStr, what: impl Fn() -> String) -> Result<(), Error> {
    if text.as_bytes().contains(&0) {
        return Err(Error::Nul { what: what() });
    }
    body.extend_from_slice(text.as_bytes());
    body.push(0);
    Ok(())
}

/// More than four billion arguments do not fit into memory, let alone into `execve`.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_survives_the_way_to_the_host() {
        let mut spec = Spec::new("/bin/echo", "/tmp").arg("").arg("two words");
        spec.env.set("A", "1=2");
        let body = spec.encode(Tty::Stdin).unwrap();
        let image = Image::decode(&body).unwrap();
        assert_eq!(image.tty, Tty::Stdin);
        assert_eq!(image.program, c"/bin/echo");
        assert_eq!(image.cwd, c"/tmp");
        assert_eq!(image.args, [c"", c"two words"]);
        assert_eq!(image.env, [c"A=1=2"]);
        for cut in 0..body.len() {
            assert!(Image::decode(&body[..cut]).is_none(), "{cut} of {} bytes", body.len());
        }
    }

    #[test]
    fn zero_bytes_are_refused_without_showing_the_value() {
        let refused = |spec: Spec| spec.encode(Tty::None).unwrap_err().to_string();
        let base = || Spec::new("/bin/echo", "/tmp");
        assert_eq!(refused(base().arg("a").arg("sec\0ret")), "argument 2 contains a zero byte");
        let mut spec = base();
        spec.env.set("NAME", "sec\0ret");
        assert_eq!(refused(spec), "the variable \"NAME\" contains a zero byte");
        let mut spec = base();
        spec.env.set("A=B", "x");
        assert_eq!(refused(spec), "\"A=B\" is not a name of an environment variable");
        assert_eq!(refused(Spec::new("echo", "/tmp")), "echo is not an absolute path");
        assert_eq!(refused(Spec::new("/bin/echo", ".")), ". is not an absolute path");
    }

    #[test]
    fn debug_shows_neither_arguments_nor_values() {
        let mut spec = Spec::new("/bin/echo", "/tmp").arg("hunter2");
        spec.env.set("API_KEY", "hunter2");
        let shown = format!("{spec:?}");
        assert!(!shown.contains("hunter2") && shown.contains("API_KEY"), "{shown}");
    }
}

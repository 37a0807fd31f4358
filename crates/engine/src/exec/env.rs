//! What a command finds in its environment.

use tieline_proc::Env;

use crate::exec::Input;

/// What of our own environment a command may know: a short list, and what `allowed` adds; see
/// [`Env::for_tools`].
pub fn for_tools(allowed: &[String]) -> Env {
    Env::for_tools(std::env::vars_os(), allowed)
}

/// `base` with what keeps programs from waiting for a key or painting: nobody turns a pager's pages,
/// and colours are noise to a model. On a terminal `TERM` stays what it was.
pub fn environment(base: &Env, input: Input) -> Env {
    let mut env = base.clone();
    for pager in ["PAGER", "GIT_PAGER", "GH_PAGER", "MANPAGER", "SYSTEMD_PAGER"] {
        env.set(pager, "cat");
    }
    env.set("NO_COLOR", "1").set("GIT_TERMINAL_PROMPT", "0");
    match input {
        Input::Terminal(_) if env.get("TERM").is_none_or(|term| term == "dumb") => {
            env.set("TERM", "xterm");
        }
        Input::Terminal(_) => {}
        Input::None | Input::Pipe => {
            env.set("TERM", "dumb");
        }
    }
    // Without any, programs take all text for ASCII.
    if ["LANG", "LC_ALL", "LC_CTYPE"].iter().all(|name| env.get(name).is_none()) {
        env.set("LANG", "C.UTF-8");
    }
    env
}

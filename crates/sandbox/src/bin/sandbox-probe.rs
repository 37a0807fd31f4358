fn main(){ tieline_sandbox::init(); }


import os, sys, _bashkit, _bashkit_boot
_bashkit.argv = lambda argv=["python3", *sys.argv[1:]]: argv
del sys.path[0]
sys.path.append("/usr/local/lib/more.zip")
sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
sys.executable = "/usr/local/bin/python3"
sys.exit(_bashkit_boot.main())

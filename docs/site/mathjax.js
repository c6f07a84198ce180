MathJax.Hub.Config({messageStyle: "none"});  // no box that tells what is being loaded

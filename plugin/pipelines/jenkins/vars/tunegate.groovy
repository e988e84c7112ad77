// tunegate(base: 'origin/main'): gates the checked-out commit; an undecided gate is unstable.
def call(Map options = [:]) {
    def base = options.base ?: 'origin/main'
    int code = sh(returnStatus: true, script: "tunegate run --base '${base}' --out .tunegate")
    junit allowEmptyResults: true, testResults: '.tunegate/junit.xml'
    archiveArtifacts allowEmptyArchive: true, artifacts: '.tunegate/*'
    if (code == 3) {
        unstable 'tunegate: inconclusive'
    } else if (code != 0) {
        error "tunegate: exit code ${code}"
    }
}
